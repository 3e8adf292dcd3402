"""`papermill --engine rtx`: what it leaves has its numbers filled in (`rtx_core/report/filling.py`)."""

from papermill.engines import NBClientEngine

from rtx_core.report.filling import fill


class Engine(NBClientEngine):
    """Papermill's own engine; numbers are filled in also where a cell failed."""

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, *arguments, **options):
        try:
            return super().execute_managed_notebook(nb_man, kernel_name, *arguments, **options)
        finally:
            fill(nb_man.nb)
