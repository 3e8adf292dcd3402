"""What is measured of trained models."""
