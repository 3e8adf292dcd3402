"""Short names for the two Yelp tasks at the reduced budget: 10,000 training texts, one epoch."""

from rtx_core import records
from rtx_core.report.values import Task

VALUES = {
    "yelp": lambda: Task(records.records(name="yelp-trainrows10000-epochs1"), called="Yelp at 128 tokens"),
    "yelp_512": lambda: Task(
        records.records(name="yelp-maxlength512-trainrows10000-epochs1"), called="Yelp at 512 tokens"
    ),
}
