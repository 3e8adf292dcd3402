"""Functions and classes of records that the paper's pages share; nothing here knows where records lie."""
