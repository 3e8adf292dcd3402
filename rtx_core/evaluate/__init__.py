"""What is measured of trained models."""


def beside_the_test(model, task, train, device) -> dict:
    """A record's `latency`; of language models also its `samples` or `extra`."""
    if task.unit == "texts":
        from rtx_core.evaluate.latency import of_classifier

        return {"latency": of_classifier(model, task, train, device)}
    from rtx_core.data.algorithmic import Generated
    from rtx_core.data.stories import Stories
    from rtx_core.evaluate import generation, stories

    if isinstance(task, Generated):
        return generation.of_generated(model, task, device)
    return (stories if isinstance(task, Stories) else generation).measured(model, task, device)
