//! Operations on archives. They print nothing.
