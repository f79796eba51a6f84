"""Files in the encodings that people have, and names that show that the wrong one was guessed."""

import pytest

from largesse.base.file_text import SINGLE_BYTE
from largesse.drafts.sheet import Sheet, SheetRow
from largesse.drafts.text_sheet import TWICE, better_encoding, converted, read_text_file, repaired

WESTERN = ["Zoë Müller", "François Lefèvre", "Jürgen Groß", "Peña", "Søren Åberg", "O\u2019Neil"]


def misread(names: list[str], real: str, read_as: str) -> list[str]:
    return [name.encode(real).decode(read_as) for name in names]


@pytest.mark.parametrize(
    ("names", "real", "read_as"),
    [
        (["Zoë Müller", "André Peña"], "mac_roman", "cp1252"),
        (["Renée", "Jürgen Köhler"], "cp850", "mac_roman"),
        (["Zoë Müller", "François"], "cp1252", "mac_roman"),
        (["Łukasz Wójcik", "Żaneta Gąsior"], "cp1250", "cp1252"),
        (["Иван Петров", "Анна Чехова"], "cp1251", "cp1252"),
        (["Γιώργος Παπαδόπουλος", "Ελένη"], "cp1253", "cp1252"),
        (["Çağr\u0131 Öğüt", "Y\u0131ld\u0131z"], "cp1254", "cp1252"),
        (["محمد علي", "فاطمة الزهراء"], "cp1256", "cp1252"),
        (["Zoë Müller"], "utf-8", "cp1252"),
    ],
)
def test_a_better_encoding_is_found_by_the_names(names: list[str], real: str, read_as: str) -> None:
    shown = misread(names, real, read_as)
    offered = ("utf-8", *SINGLE_BYTE) if real == "utf-8" else SINGLE_BYTE
    offer = better_encoding(shown, read_as, offered)
    assert offer is not None
    assert offer.encoding in {real, TWICE}
    assert offer.after in names
    assert offer.before in shown


@pytest.mark.parametrize(
    "names",
    [WESTERN, ["Łukasz Wójcik"], ["Иван Петров"], ["Ada"], ["Šárka Žižková"], ["Ελένη"], ["محمد"], ["山田ァひ"], []],
)
@pytest.mark.parametrize("encoding", ["utf-8", ""])
def test_names_that_are_right_are_left_alone(names: list[str], encoding: str) -> None:
    assert better_encoding(names, encoding, ("utf-8", "cp1252", "mac_roman", "cp850") if encoding else ()) is None


def test_names_that_were_encoded_twice_are_repaired_and_others_stay() -> None:
    shown = misread(["Zoë", "Jürgen"], "utf-8", "cp1252")
    offer = better_encoding(["Bo", *shown], "", ())
    assert offer is not None
    assert (offer.encoding, offer.before, offer.after) == (TWICE, shown[0], "Zoë")
    sheet = Sheet(
        [SheetRow(1, ("a@x.com", shown[0])), SheetRow(2, ("b@x.com", "Müller")), SheetRow(3, ("c", "\u4e00"))]
    )
    assert [row.cells[1] for row in repaired(sheet).rows] == ["Zoë", "Müller", "\u4e00"]


def test_names_encoded_twice_in_a_file_of_windows_are_not_repaired_before_somebody_says_so() -> None:
    """A list in UTF-8 to which a line was added on Windows is no UTF-8 any more."""
    file = read_text_file("email,name\na@x.com,Zoë Müller\nb@x.com,Jürgen\nc@x.com,".encode() + b"\x96\n")
    assert file.encoding == "cp1252"
    offer = better_encoding(["ZoÃ« MÃ¼ller", "JÃ¼rgen"], file.encoding, file.offered)
    assert offer is not None
    assert offer.encoding == TWICE


@pytest.mark.parametrize("length", [60, 61])
def test_a_long_name_is_not_examined(length: int) -> None:
    [shown] = misread(["Zoë"], "utf-8", "cp1252")
    offer = better_encoding([shown.ljust(length, "x")], "", ())
    assert (offer is not None) == (length == 60)


@pytest.mark.parametrize("encoding", ["mac_roman", "cp850", "cp1252"])
@pytest.mark.parametrize("names", [["Jürgen Köhler", "Zoë Groß"], ["André Lefèvre", "François Peña"]])
def test_a_file_with_accents_in_its_words_is_read_right(names: list[str], encoding: str) -> None:
    text = "email,name\n" + "".join(f"x@example.com,{name}\n" for name in names)
    assert read_text_file(text.encode(encoding)).text == text


@pytest.mark.parametrize(
    "text", ["price\n25 €\n", "name\nAcme®\n", "name\n\u201cAda\u201d\n", "n°\n1\n", "Ada \u2013 Bo\n"]
)
def test_signs_do_not_change_the_encoding(text: str) -> None:
    assert read_text_file(text.encode("cp1252")).text == text


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp932", "氏名,メールアドレス,数量\n山田 太郎,taro@example.com,2\n"),
        ("cp932", "名前,メール\nタナカ,tanaka@example.com\n"),
        ("gb18030", "姓名,邮箱,数量\n王小明,wang@example.com,2\n李娜,li@example.com,1\n"),
        ("cp949", "이름,이메일\n김철수,kim@example.com\n"),
        ("big5", "姓名,電子郵件\n陳美玲,chen@example.com\n林志明,lin@example.com\n"),
    ],
)
def test_files_of_eastern_asia(encoding: str, text: str) -> None:
    file = read_text_file(text.encode(encoding))
    assert (file.encoding, file.text) == (encoding, text)
    assert {*file.offered} & {*SINGLE_BYTE}


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Hélène Lefèvre,Beyoncé\nMÜLLER GROß,ÄÖÜ\n«Ada»,N° 5\n"),
        ("cp1251", "Иван Петров,Анна Чехова,Жданов"),
        ("cp1253", "Γιώργος Παπαδόπουλος,Ελένη\n"),
        ("cp1256", "محمد علي,فاطمة الزهراء\n"),
    ],
)
def test_files_of_other_places_are_not_taken_for_those_of_eastern_asia(encoding: str, text: str) -> None:
    assert read_text_file(text.encode(encoding)).encoding in SINGLE_BYTE


def test_rows_that_were_typed_keep_their_letters() -> None:
    sheet = Sheet([SheetRow(2, ("Zo\u2018",)), SheetRow(5, ("Zoë",))])
    fresh = converted(sheet, "cp1252", "mac_roman", keep=[5])
    assert [row.cells for row in fresh.rows] == [("Zoë",), ("Zoë",)]
    assert converted(fresh, "mac_roman", "cp1252", keep=[5]) == sheet


@pytest.mark.parametrize(
    ("data", "encoding", "offered"),
    [
        (b"ada", "utf-8", ()),
        ("Zoë".encode(), "utf-8", ("utf-8", "cp1252", "mac_roman", "cp850")),
        ("Zoë".encode("cp1252"), "cp1252", ("cp1252", "mac_roman", "cp850")),
        ("Zoë".encode("utf-8-sig"), "utf-8", ("utf-8",)),
        ("Zoë".encode("utf-16"), "utf-16-le", ("utf-16-le",)),
        (b"Fran\x8dois", "mac_roman", ("mac_roman", "cp850")),
    ],
)
def test_a_file_says_what_it_can_be_read_in(data: bytes, encoding: str, offered: tuple[str, ...]) -> None:
    file = read_text_file(data)
    assert (file.encoding, file.offered[: len(offered)]) == (encoding, offered)
    assert bool(file.offered) == bool(offered)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_read(encoding: str) -> None:
    text = "Name\tE-mail\r\nZoë Müller\ta@x.com\r\n"
    file = read_text_file(text.encode(encoding))
    assert (file.text, file.encoding) == (text, encoding)
