"""The program that a process of its own runs is where it is looked for."""

from clampz.model_counting import child_process, subprocesses


def test_the_program_of_a_process_of_its_own_is_there():
    assert subprocesses.CHILD.is_file()
    assert subprocesses.CHILD.samefile(child_process.__file__)
