"""What a release is expected to take: public, and growing with what it depends on."""

from accord.synthesis import plan_table

SCHEMA = """
version = 3
[[columns]]
name = "age"
kind = "integer"
bounds = [0, 40]
[[columns]]
name = "member"
kind = "boolean"
"""
FREE = SCHEMA + '[[columns]]\nname = "income"\nkind = "number"\n'


def test_more_records_and_columns_that_are_cut_privately_take_more() -> None:
    few, many, free = (
        plan_table(schema, size, epsilon=1, delta="1e-9").effort
        for schema, size in ((SCHEMA, 10**5), (SCHEMA, 10**8), (FREE, 10**8))
    )
    assert few is not None
    assert many is not None
    assert free is not None
    assert few.seconds < many.seconds < free.seconds
    assert few.memory < many.memory < free.memory


def test_the_outlook_tells_it_to_people_and_machines() -> None:
    outlook = plan_table(SCHEMA, 10**7, epsilon=1, delta="1e-9")
    assert "of one core and" in str(outlook)
    assert set(outlook.document()["effort"]) == {"seconds", "bytes"}
    blocks = plan_table(SCHEMA.replace("boolean", "number"), 10**5, epsilon=1, delta="1e-9", learner="gaussian")
    assert blocks.document()["effort"] is None
