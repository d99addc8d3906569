"""Views of any broker through its interface, for the terminal and the console."""
