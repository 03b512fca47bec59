"""Documents that tests make: PDF by hand, DOCX with python-docx."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence

LOCK = "(0123456789abcdef0123456789abcdef)"
ENCRYPTED = (
    "/Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -44 "
    f"/O {LOCK} /U {LOCK} >> /ID [(0123456789abcdef) (0123456789abcdef)]"
)
"""For the trailer of a PDF: no password opens it."""


def pdf(pages: Sequence[str], *, title: str = "", extra: str = "") -> bytes:
    """A PDF with these lines on its pages; ``extra`` goes into its trailer."""
    kids = " ".join(f"{5 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Title ({title}) >>",
    ]
    for number, page in enumerate(pages):
        shown = " ".join(f"({line}) Tj 0 -16 Td" for line in page.splitlines())
        drawn = f"BT /F1 12 Tf 72 720 Td {shown} ET" if page else ""
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {6 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    out, places = "%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n"
    rows = "".join(f"{place:010} 00000 n \n" for place in places)
    table = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{rows}"
    trailer = f"trailer << /Size {len(objects) + 1} /Root 1 0 R /Info 4 0 R {extra} >>"
    return f"{out}{table}{trailer}\nstartxref\n{len(out)}\n%%EOF\n".encode("latin-1")


def word(
    *paragraphs: tuple[str, str], title: str = "", rows: Sequence[Sequence[str]] = ()
) -> bytes:
    """A Word document with paragraphs, each with its style, and a table after them."""
    import docx

    document = docx.Document()
    document.core_properties.title = title
    for style, text in paragraphs:
        document.add_paragraph(text, style=style)
    if rows:
        table = document.add_table(len(rows), len(rows[0]))
        for row, cells in zip(table.rows, rows, strict=True):
            for cell, text in zip(row.cells, cells, strict=True):
                cell.text = text
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def with_body(document: bytes, xml: bytes) -> bytes:
    """A Word document with some XML at the beginning of its body."""
    begin = b"<w:body>"
    return with_part(document, "word/document.xml", lambda was: was.replace(begin, begin + xml))


def with_part(document: bytes, part: str, change: Callable[[bytes], bytes]) -> bytes:
    """A Word document of which a file within it is changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(document)) as old, zipfile.ZipFile(out, "w") as new:
        for one in old.infolist():
            content = old.read(one)
            if one.filename == part:
                content = change(content)
            new.writestr(one.filename, content, zipfile.ZIP_DEFLATED, compresslevel=1)
    return out.getvalue()
