"""Runs on another machine: `pack` what is pending into one file, make it `away` from any network, `bring` the records home."""
