"""What a trained classifier of domains answers to short sentences of our own, which no data set holds."""

from rtx_core.experiments.weights import load

SENTENCES = (  # of shopping, of a local business, of a film
    "The battery died after a week. | Great tacos, but the service was slow. | The plot is thin, but it works.",
    "Sturdy, easy to clean, and it arrived on time. | We waited an hour for a table. | I laughed from start to finish.",
    "I returned this vacuum cleaner after two weeks. | The mechanic fixed my car. | Two hours that felt like six.",
    "The book arrived with torn pages. | Our room was clean and quiet. | The best thriller of the year.",
    "These headphones hurt my ears. | The dentist was friendly and quick. | A sequel that nobody asked for.",
    "I bought this lamp for my daughter. | They forgot our order twice. | The director trusts her actors.",
)


def of_run(record, study) -> list[tuple]:
    answers = load(record).classify(" | ".join(SENTENCES).split(" | "))
    answers["meant"] = ["shopping", "local business", "movie"] * len(SENTENCES)
    return [({"answers": answers.to_dict("records")}, None)]
