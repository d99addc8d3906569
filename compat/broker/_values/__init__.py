"""The bindings' data: its classes, and how objects of Python become data and data becomes objects."""
