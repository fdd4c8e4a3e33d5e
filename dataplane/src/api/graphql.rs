//! What a GraphQL request may ask.
