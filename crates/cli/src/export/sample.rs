//! Hand-made streams and items for the tests of the exporters.
