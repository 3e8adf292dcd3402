"""Recurrences written anew from their papers, one file each; `study.RECURRENCES` names them.  They need torch alone."""
