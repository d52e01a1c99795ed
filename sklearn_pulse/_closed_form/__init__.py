"""Cross-prediction in closed form: stacked features, their moments, and the map."""
