"""Recurrences written anew from their papers, each a module that imports torch alone: `rtx bench` trains them."""
