"""What is measured beside the runs, a module a kind; `study.MEASUREMENTS` names them."""
