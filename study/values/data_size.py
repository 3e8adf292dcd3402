"""Values of models of a tenth of SST-2, of the ladder by layers × passes: `ladder_tuned.accuracy('1x1')`."""

from study import paper
from study.folders import Folders

RUNS = Folders(paper.records)
VALUES = {"ladder": RUNS.ladder, "ladder_tuned": RUNS.ladder_tuned}
