"""Recurrences written anew from their papers, each a module that imports torch alone: `rtx bench` trains them."""

from study.recurrences.huginn import Huginn
from study.recurrences.hyper import Hyper
from study.recurrences.lstm import LSTM
from study.recurrences.trm import TRM
from study.recurrences.universal import Universal

RECURRENCES = (Universal, Huginn, TRM, Hyper, LSTM)
