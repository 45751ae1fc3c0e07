"""The version of this package, which is that of the library it goes with."""
__version__ = "0.2.0"
