"""What is measured of trained models."""


def beside_the_test(model, task, config, device) -> dict:
    """A record's `latency`; of language models also its `samples` or `extra`.  `config` is the run's."""
    from rtx_core.evaluate import generation, latency, stories
    from rtx_core.train.device import environment

    writes = callable(getattr(model, "start", None)) and hasattr(model, "advance")
    measured = {"characters": generation.of_characters, "stories": stories.measured}
    if config.data.labelled:
        found = {"latency": latency.of_classifier(model, task, config.train, device)}
    elif not writes:
        found = {"latency": generation.latency_of_forward(model, task, device)}
    else:
        found = measured.get(config.data.written, generation.of_generated)(model, task, device)
    return found | {"latency": {"measured": found["latency"], "environment": environment(device)}}
