"""What is measured of trained models."""


def beside_the_test(model, task, train, device) -> dict:
    """A record's `latency`; of language models also its `samples` or `extra`."""
    from rtx_core.data.algorithmic import Generated
    from rtx_core.data.stories import Stories
    from rtx_core.evaluate import generation, latency, stories
    from rtx_core.train.device import environment

    if task.unit == "texts":
        found = {"latency": latency.of_classifier(model, task, train, device)}
    elif not (callable(getattr(model, "start", None)) and hasattr(model, "advance")):  # it writes no texts
        found = {"latency": generation.latency_of_forward(model, task, device)}
    elif isinstance(task, Generated):
        found = generation.of_generated(model, task, device)
    elif isinstance(task, Stories):
        found = stories.measured(model, task, device)
    else:
        found = generation.of_characters(model, task, device)
    return found | {"latency": {"measured": found["latency"], "environment": environment(device)}}
