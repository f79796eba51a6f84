"""The seed file: describes an installation in YAML. `largesse load` creates or updates what it names."""
