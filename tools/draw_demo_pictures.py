"""Draws the pictures of the demo's gifts, which stand beside its seed file: plain shapes on a tinted ground.

    python tools/draw_demo_pictures.py

Each is drawn as SVG, painted by Chromium, and written as a PNG of few colours. The drawings are ours, and this file is their source.
"""

import base64
import struct
import zlib
from collections import Counter
from pathlib import Path

from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parents[1] / "src/largesse/seed/pictures"
WIDTH, HEIGHT = 480, 270
COLOURS = 64

# By name: the two tints of the ground, and the shapes.
PICTURES = {
    "coffee": (
        "#f6e7d8",
        "#e3c3a1",
        """<path d="M165 100h120v60a60 60 0 0 1-60 60 60 60 0 0 1-60-60z" fill="#fff"/>
        <path d="M285 115h14a26 26 0 0 1 0 52h-18" fill="none" stroke="#fff" stroke-width="14"/>
        <ellipse cx="225" cy="101" rx="60" ry="13" fill="#6b3f22"/><rect x="145" y="222" width="160" height="12" rx="6" fill="#a8764b"/>
        <path d="M200 78q-12-16 0-30t0-28M238 78q-12-16 0-30t0-28" fill="none" stroke="#a8764b" stroke-width="6" stroke-linecap="round"/>""",
    ),
    "books": (
        "#e4ecf7",
        "#b9cde8",
        """<rect x="140" y="70" width="46" height="150" rx="4" fill="#27477a"/><rect x="190" y="52" width="38" height="168" rx="4" fill="#c9553d"/>
        <rect x="232" y="84" width="52" height="136" rx="4" fill="#e0a63c"/><rect x="298" y="76" width="44" height="148" rx="4" fill="#3f7a62" transform="rotate(-9 320 150)"/>
        <path d="M140 100h46M140 112h46M190 80h38M190 196h38M232 110h52M232 194h52" stroke="#fff" stroke-width="5" opacity=".75"/>
        <rect x="118" y="220" width="250" height="10" rx="5" fill="#6d7f99"/>""",
    ),
    "cinema": (
        "#efe3f5",
        "#cbb2dc",
        """<g transform="rotate(-8 240 140)"><path d="M120 90h240v34a16 16 0 0 0 0 32v34H120v-34a16 16 0 0 0 0-32z" fill="#5b2a78"/>
        <path d="M300 96v88" stroke="#fff" stroke-width="4" stroke-dasharray="8 8"/><path d="M205 112l12 24 26 4-19 18 5 26-24-13-24 13 5-26-19-18 26-4z" fill="#f3c64e"/></g>""",
    ),
    "groceries": (
        "#e6f3de",
        "#bcdcaa",
        """<circle cx="205" cy="104" r="34" fill="#d94f3d"/><path d="M205 76q4-18 18-22" stroke="#5c3a1e" stroke-width="6" fill="none"/>
        <ellipse cx="275" cy="98" rx="22" ry="46" fill="#e8a33b" transform="rotate(24 275 98)"/><circle cx="242" cy="88" r="26" fill="#6fae4e"/>
        <path d="M130 124h220l-22 98a14 14 0 0 1-14 12H166a14 14 0 0 1-14-12z" fill="#a8733d"/>
        <path d="M134 148h212M140 176h200M146 204h188M180 126l14 106M240 126v106M300 126l-14 106" stroke="#8a5a2b" stroke-width="5"/>""",
    ),
    "garden": (
        "#e9f4e4",
        "#b7d7a4",
        """<path d="M240 190V96" stroke="#3c7a3a" stroke-width="9"/><path d="M240 150q-56-4-62-50 54 0 62 50zM240 130q50-8 54-56-48 4-54 56z" fill="#56a04f"/>
        <circle cx="240" cy="82" r="18" fill="#f0b93a"/><g fill="#e46a8c"><circle cx="240" cy="50" r="17"/><circle cx="270" cy="72" r="17"/><circle cx="259" cy="107" r="17"/><circle cx="221" cy="107" r="17"/><circle cx="210" cy="72" r="17"/></g>
        <circle cx="240" cy="82" r="18" fill="#f0b93a"/><path d="M186 176h108l-12 60h-84z" fill="#b9643c"/><rect x="178" y="166" width="124" height="20" rx="6" fill="#a2532f"/>""",
    ),
    "spa": (
        "#e1f2f1",
        "#a9d5d1",
        """<ellipse cx="240" cy="210" rx="86" ry="24" fill="#58676b"/><ellipse cx="240" cy="172" rx="66" ry="21" fill="#74868b"/><ellipse cx="240" cy="138" rx="46" ry="17" fill="#93a5a9"/>
        <path d="M240 118q-40-20-34-66 30 16 34 66zm0 0q40-20 34-66-30 16-34 66zm0 0q-20-44 0-84 20 40 0 84z" fill="#f2a7b8"/><path d="M110 236q30-14 60 0t60 0 60 0 60 0" fill="none" stroke="#5fa8a3" stroke-width="6"/>""",
    ),
    "tea": (
        "#f8eedc",
        "#e6cf9f",
        """<path d="M160 120q80-34 160 0v30a80 70 0 0 1-160 0z" fill="#fff"/><path d="M318 128q46-6 48 22t-56 30" fill="none" stroke="#fff" stroke-width="13"/>
        <path d="M164 132q-36-6-46-44" fill="none" stroke="#fff" stroke-width="15" stroke-linecap="round"/><ellipse cx="240" cy="112" rx="58" ry="14" fill="#e9dcc6"/><circle cx="240" cy="92" r="10" fill="#b8863b"/>
        <g fill="#d9708c"><circle cx="206" cy="166" r="12"/><circle cx="240" cy="176" r="12"/><circle cx="274" cy="166" r="12"/></g><rect x="150" y="226" width="180" height="10" rx="5" fill="#b8863b"/>""",
    ),
    "sports": (
        "#e3effa",
        "#a9cbe9",
        """<circle cx="240" cy="138" r="86" fill="#fff"/><path d="M240 98l38 28-15 45h-46l-15-45z" fill="#23324a"/>
        <path d="M240 98V54M278 126l44-16M263 171l28 36M217 171l-28 36M202 126l-44-16" stroke="#23324a" stroke-width="7"/>
        <path d="M196 64l44-12 44 12M326 150l-6 44M154 150l6 44" stroke="#23324a" stroke-width="7" fill="none"/><ellipse cx="240" cy="236" rx="80" ry="8" fill="#7fa5c8"/>""",
    ),
    "rail": (
        "#e8eaf6",
        "#b3badf",
        """<path d="M110 214h270" stroke="#5d668c" stroke-width="8"/><path d="M130 110q0-34 34-34h120q66 0 86 66l8 40q4 18-16 18H146q-16 0-16-16z" fill="#d4493f"/>
        <path d="M150 100h44v40h-44zM206 100h44v40h-44zM262 100h36q28 2 42 40h-78z" fill="#eaf2fb"/><path d="M130 164h244" stroke="#fff" stroke-width="8"/>
        <g fill="#30364f"><circle cx="178" cy="204" r="14"/><circle cx="228" cy="204" r="14"/><circle cx="312" cy="204" r="14"/></g>""",
    ),
    "charity": (
        "#fde6e6",
        "#f3b7b5",
        """<path d="M240 216C120 146 150 70 200 70c24 0 40 18 40 34 0-16 16-34 40-34 50 0 80 76-40 146z" fill="#cf3f4b"/>
        <path d="M186 98q-16 10-12 36" fill="none" stroke="#fff" stroke-width="9" stroke-linecap="round" opacity=".7"/>""",
    ),
    "music": (
        "#e7e3f8",
        "#b9aeea",
        """<path d="M140 160a100 90 0 0 1 200 0" fill="none" stroke="#3a2f78" stroke-width="16"/><rect x="122" y="150" width="44" height="76" rx="18" fill="#3a2f78"/><rect x="314" y="150" width="44" height="76" rx="18" fill="#3a2f78"/>
        <path d="M214 206v-66l60-14v64" fill="none" stroke="#e0568a" stroke-width="9"/><ellipse cx="202" cy="206" rx="15" ry="11" fill="#e0568a"/><ellipse cx="262" cy="190" rx="15" ry="11" fill="#e0568a"/>""",
    ),
    "bakery": (
        "#fbeedb",
        "#eccb94",
        """<path d="M110 176q-6-70 130-74 136 4 130 74-2 34-30 34H140q-28 0-30-34z" fill="#c98539"/>
        <path d="M160 128l22 40M208 112l24 48M258 112l24 48M306 124l22 40" stroke="#f3d9a8" stroke-width="11" stroke-linecap="round"/><ellipse cx="240" cy="232" rx="120" ry="8" fill="#d1a15f"/>""",
    ),
    "dinner": (
        "#f3e9e2",
        "#d9bfae",
        """<circle cx="240" cy="140" r="84" fill="#fff"/><circle cx="240" cy="140" r="54" fill="#f0e4da"/><path d="M212 132q28-34 56 0-4 36-28 36t-28-36z" fill="#c4553c"/><path d="M240 116q8-20 26-20-2 20-26 20z" fill="#5d9150"/>
        <path d="M118 70v50q0 14 12 14v80M106 70v40M130 70v40M142 70v50q0 14-12 14M356 70q-26 30-8 74v70" fill="none" stroke="#6b5a50" stroke-width="7" stroke-linecap="round"/>""",
    ),
    "hamper": (
        "#f9e8d6",
        "#e4ae78",
        """<path d="M150 116q90-110 180 0" fill="none" stroke="#7c4a22" stroke-width="12"/><rect x="172" y="66" width="32" height="70" rx="8" fill="#3d6b45"/><rect x="180" y="46" width="16" height="26" fill="#3d6b45"/>
        <circle cx="238" cy="106" r="26" fill="#c8472f"/><circle cx="284" cy="110" r="24" fill="#d88c2d"/><path d="M126 126h228l-20 94a14 14 0 0 1-14 12H160a14 14 0 0 1-14-12z" fill="#a5662f"/>
        <path d="M130 150h220M136 178h208M142 206h196" stroke="#7c4a22" stroke-width="6"/><path d="M240 138l-34-14v32zM240 138l34-14v32z" fill="#b5293e"/><circle cx="240" cy="139" r="9" fill="#8f1e30"/>""",
    ),
    "newborn": (
        "#e7f1fb",
        "#bcd8f1",
        """<circle cx="240" cy="118" r="62" fill="#c79a6b"/><circle cx="192" cy="70" r="24" fill="#c79a6b"/><circle cx="288" cy="70" r="24" fill="#c79a6b"/><circle cx="192" cy="70" r="12" fill="#e8c9a4"/><circle cx="288" cy="70" r="12" fill="#e8c9a4"/>
        <ellipse cx="240" cy="138" rx="30" ry="24" fill="#e8c9a4"/><circle cx="218" cy="108" r="7" fill="#3c2b1e"/><circle cx="262" cy="108" r="7" fill="#3c2b1e"/><ellipse cx="240" cy="128" rx="10" ry="7" fill="#3c2b1e"/><path d="M240 134v10m-12 2q12 10 24 0" stroke="#3c2b1e" stroke-width="4" fill="none"/>
        <path d="M240 196l-50-20v44zM240 196l50-20v44z" fill="#e0728f"/><circle cx="240" cy="197" r="12" fill="#c14e70"/>""",
    ),
    "flowers": (
        "#fbe9f1",
        "#efb9d1",
        """<path d="M240 150v86M200 150q10 40 40 60M280 150q-10 40-40 60" stroke="#3f7d46" stroke-width="8" fill="none"/>
        <g fill="#d8457a"><circle cx="240" cy="70" r="20"/><circle cx="264" cy="92" r="20"/><circle cx="255" cy="122" r="20"/><circle cx="225" cy="122" r="20"/><circle cx="216" cy="92" r="20"/></g><circle cx="240" cy="98" r="16" fill="#f5c242"/>
        <g fill="#e88d3c"><circle cx="182" cy="112" r="14"/><circle cx="200" cy="128" r="14"/><circle cx="190" cy="148" r="14"/><circle cx="170" cy="146" r="14"/><circle cx="163" cy="126" r="14"/></g><circle cx="181" cy="132" r="11" fill="#fff3cf"/>
        <g fill="#8a63c7"><circle cx="298" cy="112" r="14"/><circle cx="316" cy="128" r="14"/><circle cx="308" cy="148" r="14"/><circle cx="288" cy="146" r="14"/><circle cx="280" cy="126" r="14"/></g><circle cx="298" cy="132" r="11" fill="#fff3cf"/>""",
    ),
    "plant": (
        "#e8f2ea",
        "#b5d3bd",
        """<path d="M240 178q-10-70-70-96 4 70 70 96zM240 178q10-70 70-96-4 70-70 96zM240 178q-26-70 0-132 26 62 0 132zM240 178q-40-30-92-22 30 36 92 22zM240 178q40-30 92-22-30 36-92 22z" fill="#3f8b57"/>
        <path d="M190 174h100l-12 62h-76z" fill="#c07145"/><rect x="182" y="164" width="116" height="20" rx="6" fill="#a95d36"/>""",
    ),
    "cheese": (
        "#fdf3d3",
        "#f1d67c",
        """<rect x="110" y="196" width="260" height="24" rx="12" fill="#a8733d"/><path d="M140 196v-40l170-72q40 20 44 72v40z" fill="#f0b93a"/><path d="M140 156h214v40H140z" fill="#e3a522"/>
        <g fill="#c98a12"><circle cx="190" cy="176" r="12"/><circle cx="262" cy="180" r="9"/><circle cx="318" cy="172" r="13"/><ellipse cx="288" cy="128" rx="15" ry="10"/></g>""",
    ),
    "macarons": (
        "#fdecef",
        "#f3bfca",
        """<g><path d="M150 118a90 44 0 0 1 180 0z" fill="#e58aa0"/><rect x="156" y="118" width="168" height="14" rx="7" fill="#fff4e6"/><path d="M150 132h180q0 26-24 26H174q-24 0-24-26z" fill="#d9748d"/></g>
        <path d="M120 196a60 30 0 0 1 120 0z" fill="#9cc46b"/><rect x="124" y="196" width="112" height="10" fill="#fff4e6"/><path d="M120 206h120q0 20-18 20h-84q-18 0-18-20z" fill="#86ad57"/>
        <path d="M246 196a60 30 0 0 1 120 0z" fill="#8f7bd0"/><rect x="250" y="196" width="112" height="10" fill="#fff4e6"/><path d="M246 206h120q0 20-18 20h-84q-18 0-18-20z" fill="#7a66bd"/>""",
    ),
    "mug": (
        "#e6eef0",
        "#adc6cd",
        """<path d="M160 84h130v120a22 22 0 0 1-22 22h-86a22 22 0 0 1-22-22z" fill="#2f5d68"/><path d="M290 112h22q34 0 34 40t-34 40h-22" fill="none" stroke="#2f5d68" stroke-width="15"/>
        <rect x="154" y="76" width="142" height="14" rx="7" fill="#1f424b"/><path d="M178 190l34-62 22 36 14-20 26 46z" fill="#fff"/><circle cx="262" cy="122" r="10" fill="#f0b93a"/>""",
    ),
    "onsen": (
        "#e3f0f6",
        "#a7cfe2",
        """<path d="M120 160h240v30a50 50 0 0 1-50 46H170a50 50 0 0 1-50-46z" fill="#8a5a35"/><ellipse cx="240" cy="160" rx="120" ry="26" fill="#5fb0cf"/>
        <path d="M190 136q-16-24 0-46t0-44M240 126q-16-24 0-46t0-44M290 136q-16-24 0-46t0-44" fill="none" stroke="#fff" stroke-width="9" stroke-linecap="round"/>""",
    ),
    "hoodie": (
        "#eae8e4",
        "#c6c0b6",
        """<path d="M190 74q50 40 100 0l60 34-22 56-26-12v84H178v-84l-26 12-22-56z" fill="#34506b"/><path d="M190 74q-6 46 50 56 56-10 50-56-14-22-50-22t-50 22z" fill="#26405a"/>
        <path d="M228 128v34M252 128v34" stroke="#fff" stroke-width="4"/><path d="M204 186h72l10 34h-92z" fill="#26405a"/>""",
    ),
}


def drawing(light: str, deep: str, shapes: str) -> str:
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">
    <rect width="{WIDTH}" height="{HEIGHT}" fill="{light}"/><circle cx="240" cy="138" r="122" fill="{deep}"/>{shapes}</svg>"""


PAINT = """async (drawing) => {
    const image = new Image();
    image.src = "data:image/svg+xml," + encodeURIComponent(drawing);
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const brush = canvas.getContext("2d");
    brush.drawImage(image, 0, 0);
    const pixels = brush.getImageData(0, 0, image.width, image.height).data;
    let text = "";
    for (let at = 0; at < pixels.length; at += 4) text += String.fromCharCode(pixels[at], pixels[at + 1], pixels[at + 2]);
    return btoa(text);
}"""


def png(pixels: bytes) -> bytes:
    """A picture of the commonest colours, each other one as the nearest of them."""
    colours = [tuple(pixels[at : at + 3]) for at in range(0, len(pixels), 3)]
    palette = [colour for colour, _ in Counter(colours).most_common(COLOURS)]
    nearest = {colour: min(range(len(palette)), key=lambda one: apart(colour, palette[one])) for colour in set(colours)}
    rows = [bytes(nearest[one] for one in colours[at : at + WIDTH]) for at in range(0, len(colours), WIDTH)]
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 3, 0, 0, 0)
    parts = (
        (b"IHDR", head),
        (b"PLTE", b"".join(bytes(colour) for colour in palette)),
        (b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )


def apart(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
        page = browser.new_page()
        for name, drawn in PICTURES.items():
            pixels = base64.b64decode(page.evaluate(PAINT, drawing(*drawn)))
            (FOLDER / f"{name}.png").write_bytes(png(pixels))
        browser.close()


if __name__ == "__main__":
    main()
