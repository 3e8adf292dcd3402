"""The names that the book's prose quotes: the `VALUES` of every module here."""
