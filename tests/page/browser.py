# SPDX-License-Identifier: Apache-2.0
"""Drives Chromium over its own protocol, through a pair of pipes: no driver, no port, no package.

    with Browser() as browser:
        page = browser.open("http://localhost:8000/")
        page.wait("document.title !== ''", "a title")
        page.click("#theme")
"""

import base64
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading

SECONDS = 120  # for everything that is waited for


def find():
    """The path of Chromium, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return None


class Failed(Exception):
    pass


class Browser:
    """A process of Chromium without a window. Its profile is a folder that is removed at the end."""

    FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-default-apps", "--mute-audio", "--hide-scrollbars",
             "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider",
             "--force-color-profile=srgb", "--font-render-hinting=none", "--remote-debugging-pipe",
             "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"]

    def __init__(self, *flags):
        self.profile = tempfile.mkdtemp(prefix="rp-chromium-")
        for_browser, self.to = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in os.pipe()]
        self.back, from_browser = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in os.pipe()]

        def place():  # Chromium reads commands from descriptor 3 and writes to 4
            os.dup2(for_browser, 3)
            os.dup2(from_browser, 4)

        self.process = subprocess.Popen(
            [find(), *self.FLAGS, f"--user-data-dir={self.profile}", *flags, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=place, start_new_session=True)
        os.close(for_browser)
        os.close(from_browser)
        self.number = 0
        self.answers, self.pages, self.closed = {}, {}, []
        self.arrived = threading.Condition()
        self.ended = False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        rest = b""
        while True:
            try:
                data = os.read(self.back, 1 << 16)
            except OSError:
                data = b""
            with self.arrived:
                if not data:
                    self.ended = True
                    self.arrived.notify_all()
                    os.close(self.back)
                    return
                *messages, rest = (rest + data).split(b"\0")
                for message in messages:
                    self.take(json.loads(message))
                self.arrived.notify_all()

    def take(self, message):
        if "id" in message:
            self.answers[message["id"]] = message
        elif message.get("sessionId") in self.pages:
            self.pages[message["sessionId"]].events.append(message)

    def call(self, method, session=None, **parameters):
        """Sends a command and returns its result."""
        with self.arrived:
            self.number += 1
            number = self.number
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        with self.arrived:
            if not self.arrived.wait_for(lambda: number in self.answers or self.ended, SECONDS):
                raise Failed(f"{method}: no response")
            answer = self.answers.pop(number, {"error": {"message": "Chromium has ended"}})
        if "error" in answer:
            raise Failed(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, address, width=1280, height=800, dark=False, certificates=True, fresh=False):
        """Opens a page in a tab that was closed before, if there is one: a new tab costs a second of
        processor time. Storage belongs to an address with its port, so pages of other servers do not
        share it. `fresh`: a new profile, without a cache."""
        if self.closed and not fresh:
            page = self.closed.pop()
        else:
            context = self.call("Target.createBrowserContext")["browserContextId"]
            target = self.call("Target.createTarget", url="about:blank", browserContextId=context)
            page = Page(self, context, target["targetId"])
        return page.start(address, width, height, dark, certificates)

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # a group of its own; there is nothing to save
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.to)  # the reader ends when the last helper of Chromium has ended
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Page:
    KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, "")}

    def __init__(self, browser, context, target):
        self.browser, self.context, self.target, self.events = browser, context, target, []
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.pages[self.session] = self

    def start(self, address, width, height, dark, certificates):
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Security.setIgnoreCertificateErrors", ignore=not certificates)
        self.resize(width, height)
        self.dark(dark)
        self.go(address)
        return self

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def go(self, address):
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'", f"the page {address}")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)

    def dark(self, yes):
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if yes else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}])

    def evaluate(self, expression):
        """The value of an expression; a promise is waited for."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                           returnByValue=True, userGesture=True)
        if "exceptionDetails" in result:
            raise Failed(f"{expression}: {result['exceptionDetails'].get('exception', {}).get('description')}")
        return result["result"].get("value")

    def wait(self, condition, what):
        """Waits until an expression is true, and returns its value."""
        script = f"""new Promise((done) => {{
            const end = Date.now() + {SECONDS * 1000};
            (function look() {{
                let found = null;
                try {{ found = ({condition}); }} catch {{ }}
                if (found || Date.now() > end) done(found instanceof Node ? true : found || null); else setTimeout(look, 30);
            }})();
        }})"""
        while True:
            try:
                found = self.evaluate(script)
                break
            except Failed as failure:  # the page was left meanwhile
                if "navigated" not in str(failure) and "context" not in str(failure):
                    raise
        if not found:
            raise Failed(f"no {what}; the page shows:\n{self.text()[:3000]}\n{self.troubles()}")
        return found

    def text(self, selector="body"):
        return self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def wait_for_text(self, text, selector="body"):
        chosen = json.dumps(selector)
        return self.wait(f"document.querySelector({chosen})?.innerText.includes({json.dumps(text)})",
                         f"text {text!r} in {selector}")

    def click(self, selector):
        """Clicks on the middle of an element, as a mouse does."""
        chosen = json.dumps(selector)
        self.wait(f"document.querySelector({chosen}) && !document.querySelector({chosen}).disabled",
                  f"element {selector}")
        x, y = self.evaluate(f"""(() => {{
            const found = document.querySelector({chosen});
            found.scrollIntoView({{block: "center"}});
            const box = found.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];
        }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press(self, key):
        code, text = self.KEYS[key]
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                      text=text if kind == "keyDown" else "")

    def screenshot(self, path, whole=False):
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))

    def requests(self):
        """The addresses that the page has asked for."""
        return [e["params"]["request"]["url"] for e in list(self.events)
                if e["method"] == "Network.requestWillBeSent"]

    def troubles(self):
        """Exceptions, and errors of the console: violations of the policy among them."""
        found = []
        for event in list(self.events):
            details = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                what = details["exceptionDetails"]
                found.append(what.get("exception", {}).get("description") or what["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and details["type"] == "error":
                found.append(" ".join(str(a.get("description", a.get("value"))) for a in details["args"]))
            elif event["method"] == "Log.entryAdded" and details["entry"]["level"] == "error":
                found.append(f"{details['entry']['text']} {details['entry'].get('url', '')}")
        return found

    def close(self):
        self.go("about:blank")
        self.events.clear()
        self.browser.closed.append(self)
