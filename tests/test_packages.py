"""Wheel and source archive: the front end, the version and the description that they have."""

import io
import itertools
import json
import re
import shutil
import tarfile
import tomllib
import zipfile
from contextlib import redirect_stderr
from pathlib import Path

import pytest

import flowbook as fb
from tests.need import requires

pytestmark = requires(distribution="hatchling")

ROOT = Path(__file__).parents[1]
BUNDLES = ("flowbook/widgets/static/flowbook.js", "flowbook/widgets/static/picture.js")
EXTENSION = "labextension/prebuilt/package.json"
HOOKS = ("tools/build_front_end.py", "tools/describe_package.py")
SOURCES = ("pyproject.toml", "README.md", "LICENSE", *HOOKS)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a build reads, in a folder of its own, on a machine without npm."""
    for path in (*SOURCES, "flowbook/__init__.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    monkeypatch.setattr(shutil, "which", lambda program: None)
    return tmp_path


def built(source: Path, target: str) -> set[str]:
    """Return the paths in a wheel or source archive."""
    from hatchling.builders.sdist import SdistBuilder
    from hatchling.builders.wheel import WheelBuilder

    builder = {"sdist": SdistBuilder, "wheel": WheelBuilder}[target](str(source))
    [made] = builder.build(directory=str(source / "dist"), versions=["standard"])
    if target == "wheel":
        return set(zipfile.ZipFile(made).namelist())
    with tarfile.open(made) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


@pytest.mark.parametrize("there", [[], BUNDLES, [BUNDLES[0], EXTENSION], [BUNDLES[1], EXTENSION]])
@pytest.mark.parametrize("target", ["wheel", "sdist"])
def test_without_the_front_end_no_package_is_made(
    target: str, there: list[str], source: Path
) -> None:
    for path in there:
        put(source / path)
    said = io.StringIO()
    with pytest.raises(SystemExit), redirect_stderr(said):
        built(source, target)
    assert "`make front-end`" in said.getvalue()
    assert not list((source / "dist").glob("*"))


def test_packages_contain_the_front_end(source: Path) -> None:
    for path in (*BUNDLES, EXTENSION):
        put(source / path)
    wheel = built(source, "wheel")
    assert wheel.issuperset(BUNDLES)
    assert any(path.endswith("share/jupyter/labextensions/flowbook/package.json") for path in wheel)
    # A wheel is made of a source archive too, where there is no npm.
    assert {*BUNDLES, EXTENSION, *SOURCES} <= built(source, "sdist")


def test_the_description_needs_no_folder_beside_it(source: Path) -> None:
    from hatchling.metadata.core import ProjectMetadata
    from hatchling.plugin.manager import PluginManager

    text = ProjectMetadata(str(source), PluginManager()).core.readme
    assert "loss = fb.reduce_mean(fb.square(x @ W - 1.0))" in text
    assert "*The timeline of a step" in text
    assert "<img" not in text
    assert all(target.startswith("https://") for target in re.findall(r"\]\(([^)]+)\)", text))


def test_the_version_is_one(source: Path) -> None:
    from hatchling.metadata.core import ProjectMetadata
    from hatchling.plugin.manager import PluginManager

    front_end = json.loads((ROOT / "labextension/package.json").read_text(encoding="utf-8"))
    newest = re.search(r"^## ([\d.]+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest is not None
    version = ProjectMetadata(str(source), PluginManager()).version
    assert {version, front_end["version"], newest[1]} == {fb.__version__}


def test_nothing_sends_people_to_an_index_for_flowbook() -> None:
    """The name belongs to others there: a hint to install it would bring a stranger's program."""
    asked = re.compile(r"""pip install (?:-\S+ )*["']?flowbook(?!\S* @ )""")
    texts = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
    texts += [
        *ROOT.glob("notebooks/*.ipynb"),
        *ROOT.glob("examples/*.*"),
        *ROOT.glob("flowbook/**/*.py"),
    ]
    assert [t.name for t in texts if asked.search(t.read_text(encoding="utf-8"))] == []
    assert asked.search("pip install 'flowbook[lab]'")
    assert not asked.search('pip install "flowbook[lab] @ file:///flowbook.whl"')


def test_what_hints_say_to_install_is_what_flowbook_or_an_extra_brings() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    named = [project["dependencies"], *project["optional-dependencies"].values()]
    brought = {re.split(r"[\[>=; ]", each)[0] for each in itertools.chain(*named)}
    hints = re.compile(r"pip install ([a-z0-9][\w.-]*(?: [a-z0-9][\w.-]*-[\w.-]*)*)")
    asked = {
        package
        for path in ROOT.glob("flowbook/**/*.py")
        for found in hints.findall(path.read_text(encoding="utf-8"))
        for package in found.split()
    }
    assert {"onnx", "libcst", "google-crc32c"} <= asked <= brought


def put(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}", encoding="utf-8")
