"""Animations in headless Chromium: they load without errors and without a network, play, and show the numbers
of the run.
"""

import shutil

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import holonome as hn

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install -e '.[test]'")
Keys = webdriver.Keys
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None
)
DRIVER = shutil.which("chromedriver")
MISSING = "needs Chromium and chromedriver on the PATH; on Debian: apt install chromium chromium-driver"
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=MISSING)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--window-size=1200,1000",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_script_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


class Page:
    """A page that is open, paused at its begin."""

    def __init__(self, driver, file, dark=False, size=(1200, 1000)):
        self.driver = driver
        command = "Emulation.setDeviceMetricsOverride"
        driver.execute_cdp_cmd(
            command, {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 500}
        )
        self.prefer("dark" if dark else "light")
        driver.get_log("browser")
        driver.get(file.as_uri())
        self.wait_until_ready()

    def wait_until_ready(self):
        answer = self.driver.execute_async_script(
            "const done = arguments[0]; player.ready.then(() => { player.pause(); "
            "player.seek(player.clock[0]); done('ready'); }, error => done(error.stack))"
        )
        assert answer == "ready"

    def prefer(self, scheme):
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def next_frame(self):
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
        )

    def seek(self, t):
        self.run("player.seek(arguments[0])", t)
        self.next_frame()

    def press(self, key):
        webdriver.ActionChains(self.driver).send_keys(key).perform()

    def colour(self, x, y, stage=0):
        """Of a pixel of a canvas."""
        script = (
            "const [x, y, stage] = arguments, c = player.stages[stage]; "
            "return [...c.context.getImageData(x * c.ratio, y * c.ratio, 1, 1).data]"
        )
        return tuple(self.run(script, x, y, stage)[:3])

    @property
    def complaints(self):
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING")
        ]


@pytest.fixture(scope="module")
def andrews():
    mechanism = hn.mechanisms.andrews()
    return hn.solve(mechanism.system, mechanism.t_span, mechanism.q0, mechanism.v0, rtol=1e-9, atol=1e-9)


@pytest.fixture(scope="module")
def squeezer(pages, andrews):
    return andrews.animate(pages / "andrews.html", title="Squeezer").file


@pytest.fixture
def page(browser, squeezer):
    return Page(browser, squeezer)


@pytest.fixture(scope="module")
def wheels(pages):
    """Two runs of the wheel set, the second shorter, and their page."""
    mechanism = hn.mechanisms.wheelset()
    runs = [
        hn.solve(
            mechanism.system,
            (0, end),
            mechanism.q0,
            mechanism.v0,
            method=method,
            rtol=1e-3,
            dense_output=True,
        )
        for end, method in ((0.4, "index1"), (0.2, "bdf"))
    ]
    return runs, hn.animate(runs, pages / "two.html", titles=["without projection", "with projection"]).file


def test_loads_without_errors_and_without_a_network(page):
    assert page.complaints == []
    assert page.run("return performance.getEntriesByType('resource').map(entry => entry.name)") == []
    assert page.driver.title == "Squeezer"
    assert page.run("return document.querySelectorAll('canvas[role=img][aria-label]').length") == 1
    assert (
        page.run(
            "return [...document.querySelectorAll('button, input, select')].filter(x => "
            "!x.getAttribute('aria-label')).length"
        )
        == 0
    )
    assert "rtol 1e−9" in page.run("return document.getElementById('about').textContent")


def test_plays_and_pauses(page):
    page.press(" ")
    assert page.run("return player.playing")
    first = page.run("return player.time")
    page.driver.execute_async_script("setTimeout(arguments[0], 400)")
    page.press(" ")
    assert not page.run("return player.playing")
    then = page.run("return player.time")
    assert 0 < then - first <= 0.03
    page.next_frame()
    assert page.run("return player.time") == then
    page.run("document.getElementById('play').click()")
    assert page.run("return document.getElementById('play').getAttribute('aria-label')") == "Pause"


def test_at_its_natural_speed_a_second_lasts_a_second(page):
    natural = page.run("return player.natural")
    assert natural == pytest.approx(0.002)
    shown = page.driver.execute_async_script(
        "const done = arguments[0], begin = performance.now(); player.seek(0.001); player.play();"
        "setTimeout(() => { player.pause(); done([player.time - 0.001, (performance.now() - begin) / 1000]) "
        "}, 1500)"
    )
    assert shown[0] == pytest.approx(natural * shown[1], rel=0.4)


def test_keys_step_and_change_the_speed(page):
    page.press(Keys.ARROW_RIGHT)
    assert page.run("return player.time") == pytest.approx(0.03 / 200)
    page.press(Keys.ARROW_LEFT)
    assert page.run("return player.time") == 0
    page.press(Keys.END)
    assert page.run("return player.time") == 0.03
    page.press(Keys.ARROW_UP)
    assert page.run("return document.getElementById('speed').value") == "2"
    page.press(Keys.ARROW_DOWN)
    page.press("l")
    assert page.run("return document.getElementById('loop').getAttribute('aria-pressed')") == "false"
    page.press(" ")
    page.run("player.seek(0.0299999)")
    page.driver.execute_async_script("setTimeout(arguments[0], 300)")
    assert page.run("return [player.playing, player.time]") == [False, 0.03]


def test_scrubs(page):
    page.run(
        "const scrub = document.getElementById('scrub'); scrub.value = 0.5; scrub.dispatchEvent(new "
        "Event('input'))"
    )
    page.next_frame()
    assert page.run("return player.time") == pytest.approx(0.015, rel=1e-3)
    assert page.run("return document.getElementById('clock').textContent").startswith("t = 0.01500")
    assert page.run("return document.getElementById('scrub').getAttribute('aria-valuetext')") == "t = 0.015"


def test_points_are_those_of_the_run(page, andrews):
    """Between the frames too, against a run with these times."""
    times = np.linspace(0.0005, 0.03, 41)
    exact = hn.solve(
        andrews.system, (0, 0.03), andrews.q[:, 0], andrews.v[:, 0], rtol=1e-9, atol=1e-9, t_eval=times
    )
    parameters = andrews.system.parameters
    expected = andrews.system.drawing.at(exact.q, parameters.namespace(parameters.flat))
    found = page.run(
        "const run = player.runs[0]; return arguments[0].map(t => [...run.at(t)])", times.tolist()
    )
    names = page.run("return player.runs[0].names")
    for name, place in zip(names, np.array(found).reshape(len(times), -1, 2).transpose(1, 2, 0), strict=True):
        np.testing.assert_allclose(place, expected[name], rtol=0, atol=2e-7)


def test_graphs_show_the_numbers_of_the_run(page, andrews):
    graphs = page.run(
        "return player.graphs.map(graph => graph.div.data.map(trace => [trace.name, [...trace.x], "
        "[...trace.y]]))"
    )
    curves = {name: (x, y) for graph in graphs for name, x, y in graph}
    expected = {
        "total": andrews.energy,
        "|g|": np.max(np.abs(andrews.g), axis=0),
        "|Gv|": np.max(np.abs(andrews.gv), axis=0),
        "|E − E₀|": np.abs(andrews.energy - andrews.energy[0]),
    }
    for name, values in expected.items():
        x, y = curves[name]
        assert x == andrews.t.tolist()
        np.testing.assert_allclose(y, np.maximum(values, 1e-17) if "|" in name else values, rtol=1e-15)
    assert page.run("return player.graphs.map(graph => graph.div.layout.yaxis.type ?? 'linear')") == [
        "linear",
        "log",
    ]


def test_the_cursor_follows_the_time(page, andrews):
    for t in (0.004, 0.021):
        page.seek(t)
        places = page.run("""return player.graphs.map(graph => {
            const box = graph.div.getBoundingClientRect(), cursor = graph.cursor.getBoundingClientRect();
            const axis = graph.div._fullLayout.xaxis;
            return axis.p2l(cursor.left - box.left - axis._offset) })""")
        assert places == pytest.approx([t, t], abs=1e-4)
        value = page.run("return player.graphs[0].curves[0].value.textContent")
        assert float(value) == pytest.approx(
            andrews.energy[np.searchsorted(andrews.t, t, side="right") - 1], rel=1e-4
        )


def test_a_click_on_a_graph_goes_there(page):
    page.run("player.graphs[0].div.emit('plotly_click', {points: [{x: 0.02}]})")
    assert page.run("return player.time") == 0.02


def test_graphs_zoom_together(page):
    page.driver.execute_async_script(
        "Plotly.relayout(player.graphs[0].div, {'xaxis.range[0]': 0.01, 'xaxis.range[1]': 0.02}).then(() => "
        "setTimeout(arguments[0], 300))"
    )
    assert page.run("return player.graphs[1].div.layout.xaxis.range") == [0.01, 0.02]


def test_links_are_drawn_where_they_are(page, andrews):
    """The pixel in the middle of each bar has the colour of bars."""
    page.seek(0.011)
    middles = page.run("""const stage = player.stages[0], run = stage.run;
        return run.links.map(pair => {
            const [a, b] = pair.map(k => stage.see(run.point(k)));
            return [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2] })""")
    colours = [page.colour(x, y) for x, y in middles]
    assert len(colours) == len(andrews.system.drawing.links)
    assert sum(colour == (0, 114, 178) for colour in colours) >= len(colours) - 1  # a joint may cover one


def test_views_can_be_moved_and_reset(page):
    first = page.run("return player.stages[0].see([0, 0])")
    page.run("player.stages[0].magnify(2, 100, 100)")
    then = page.run("return player.stages[0].see([0, 0])")
    assert np.array(then[:2]) - 100 == pytest.approx(2 * (np.array(first[:2]) - 100))
    page.run("document.getElementById('fit').click()")
    assert page.run("return player.stages[0].see([0, 0])") == pytest.approx(first)


def test_dark_mode_follows_the_system(page):
    look = (
        "return [getComputedStyle(document.documentElement).backgroundColor, "
        "player.graphs[0].div.layout.font.color, player.graphs[0].div.data[0].line.color]"
    )
    light = page.run(look)
    page.prefer("dark")
    page.driver.execute_async_script("setTimeout(arguments[0], 500)")
    dark = page.run(look)
    assert all(a != b for a, b in zip(light, dark, strict=True))
    assert max(map(int, dark[0].removeprefix("rgb(").rstrip(")").split(", "))) < 50
    assert page.complaints == []


def test_a_frame_costs_little(page):
    cost = page.run("""const begin = performance.now();
        for (let k = 0; k < 60; k++) {
            for (const stage of player.stages) stage.draw(0.0005 * k);
            for (const graph of player.graphs) graph.mark(0.0005 * k) }
        return (performance.now() - begin) / 60""")
    assert cost < 16


def test_fits_a_phone(browser, squeezer):
    narrow = Page(browser, squeezer, size=(375, 800))
    assert narrow.run("return document.documentElement.scrollWidth") <= 375
    assert narrow.run("return player.stages[0].canvas.clientWidth") > 300


def test_two_runs_share_one_clock(browser, wheels):
    runs, file = wheels
    page = Page(browser, file)
    assert page.complaints == []
    assert page.run("return player.stages.length") == 2
    assert page.run("return player.clock") == [0, 0.4]
    page.seek(0.3)
    assert page.run("return player.stages.map(stage => stage.state.textContent)") == ["", "ended at t = 0.2"]
    for k, run in enumerate(runs):
        parameters = run.system.parameters
        expected = run.system.drawing.at(
            run.sol(min(0.3, run.t[-1]))[0], parameters.namespace(parameters.flat)
        )["left outer 3"]
        found = page.run(
            "const run = player.runs[arguments[0]]; run.at(0.3); return "
            "[...run.point(run.names.indexOf('left outer 3'))]",
            k,
        )
        assert found == pytest.approx(expected, abs=1e-6)
    names = page.run("return player.graphs.map(graph => graph.div.data.map(trace => trace.name))")
    assert names == [
        [
            "without projection: |g|",
            "without projection: |Gv|",
            "with projection: |g|",
            "with projection: |Gv|",
        ]
    ]


def test_space_can_be_turned(browser, wheels):
    page = Page(browser, wheels[1])
    before = page.run("return player.stages[0].see([0, 0.1, 0])")
    page.run("""const canvas = player.stages[0].canvas;
        const place = x => ({pointerId: 1, clientX: x, clientY: 200});
        const fire = (kind, x) => canvas.dispatchEvent(new PointerEvent(kind, place(x)));
        canvas.setPointerCapture = () => {};
        fire('pointerdown', 200); fire('pointermove', 260); fire('pointerup', 260)""")
    after = page.run("return player.stages[0].see([0, 0.1, 0])")
    assert abs(after[0] - before[0]) > 5
    assert page.complaints == []


def test_coordinates_are_shown_where_there_is_nothing_to_draw(browser, pages):
    solution = hn.solve(hn.System([1.0, 1.0], lambda q: -q, names=["theta1", "theta2"]), (0, 1), [1, 0.5])
    solution.animate(pages / "angles.html")
    page = Page(browser, pages / "angles.html")
    assert page.complaints == []
    assert page.run("return player.stages.length") == 0
    y = page.run("return [...player.graphs[0].div.data[1].y]")
    assert y == solution.q[1].tolist()


def test_a_notebook_cell_shows_the_page(browser, pages, andrews):
    (pages / "cell.html").write_text(
        f"<!doctype html><meta charset='utf-8'>{andrews.animate()._repr_html_()}", encoding="utf-8"
    )
    browser.get((pages / "cell.html").as_uri())
    browser.switch_to.frame(0)
    try:
        assert (
            browser.execute_async_script(
                "const done = arguments[0]; player.ready.then(() => done(player.graphs.length))"
            )
            == 2
        )
    finally:
        browser.switch_to.default_content()


@pytest.fixture(scope="module")
def cart(pages):
    """A cart in space on a rolling disc and a solid, with forces and graphs by name."""
    m = hn.Mechanism("cart", gravity=(0, 0, -9.81))
    disc = m.body("disc", mass=1, inertia=(0.0225, 0.0225, 0.045))
    box = m.body("box", shape=hn.shapes.Box(0.2, 0.2, 0.2), density=100.0)
    m.rolling("r", m.ground.at(0, 0, 0), disc.at(0, 0, 0), radius=0.3)
    m.spherical("S", disc.at(0.1, 0, 0), box.at(0, 0, 0.2))
    upright = Rotation.from_rotvec([np.pi / 2 - 0.2, 0, 0])
    start = {"disc": {"rotation": upright}}
    solution = hn.solve(m, (0, 1), start=start, speed={"disc": {"angular_velocity": (0.3, 5.0, 0)}})
    shown = {"forces": ["r", "S", "gravity"], "graphs": ["disc.position", ["S.force", "r.force"]]}
    return solution.animate(pages / "cart.html", **shown).file


@pytest.mark.parametrize("dark", [False, True])
def test_a_mechanism_in_space_is_drawn_with_wheels_solids_and_forces(browser, cart, dark):
    page = Page(browser, cart, dark=dark)
    page.seek(0.5)
    assert page.complaints == []
    titles = page.run("return [...document.querySelectorAll('.graph h2')].map(title => title.textContent)")
    assert titles == ["disc.position", "S.force, r.force"]
    counts = page.run("""const stage = player.stages[0], run = stage.run;
        const hidden = run.bodies.filter((_, number) => stage.hidden(number)).length;
        const closed = run.outward.every(side => side === 1);
        return [run.bodies.length, hidden, run.radii[0], stage.ground(), closed]""")
    assert counts[0] == 6
    assert counts[1] in (3, 4, 5)
    assert counts[2] == pytest.approx(0.3, rel=1e-5)
    assert counts[3:] == [0, True]


def test_a_wheel_has_the_colour_of_its_rim(browser, pages):
    drawing = hn.Drawing(
        lambda q: {"hub": (q[0], 0.2), "rim": (q[0], 0.0), "a": (0.0, 0.0), "b": (1.0, 0.0)},
        circles=[("hub", "rim")],
        tracks=[("a", "b")],
        arrows=[("hub", "rim")],
        symbols=[("fixed", "a"), ("prismatic", "b", "a"), ("mass", "b")],
    )
    system = hn.System([1.0], [0.5], names=["x"], drawing=drawing)
    page = Page(browser, hn.solve(system, (0, 1), [0.0]).animate(pages / "wheel.html").file)
    page.seek(0.5)
    assert page.complaints == []
    places = page.run("""const stage = player.stages[0], run = stage.run, hub = run.point(0);
        const at = a => [hub[0] + 0.2 * Math.cos(a), hub[1] + 0.2 * Math.sin(a)];
        return [0.3, 2.1, 3.6].map(a => stage.see(at(a)))""")
    for x, y, _ in places:
        assert page.colour(x, y) == pytest.approx((0, 114, 178), abs=40)  # smooth edges mix colours
