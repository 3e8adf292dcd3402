"""Values of models of a tenth of SST-2, of the ladder by layers × passes: `ladder_tuned.accuracy('1x1')`."""

from study import loaders

VALUES = {"ladder": loaders.ladder, "ladder_tuned": loaders.ladder_tuned}
