//! Changes in a JSON body on its way down, at any chunking and without holding it.
