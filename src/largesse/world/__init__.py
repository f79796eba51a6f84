"""The world file: one YAML file that describes an installation (docs/world-file.md)."""

from largesse.world.load import LoadedWorld, load_world
from largesse.world.reading import demo_world, parse_world, read_world

__all__ = ["LoadedWorld", "demo_world", "load_world", "parse_world", "read_world"]
