//! URLs of the API, as they are when they lead to the door.
