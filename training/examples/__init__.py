"""Learners in one short file each, on the same environments: to read, to copy and to change."""
