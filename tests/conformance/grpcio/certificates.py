# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests, made by openssl: an authority, a server, and clients by name."""

import subprocess


def openssl(folder, *words):
    subprocess.run(["openssl", *map(str, words)], cwd=folder, check=True, timeout=120,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Authority:
    """A certificate authority in a folder."""

    def __init__(self, folder, name="authority"):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:prime256v1", "-nodes", "-days", 2, "-subj", f"/CN={name}",
                "-keyout", "ca.key", "-out", "ca.pem")
        self.certificate = folder / "ca.pem"

    def issue(self, name, file=None):
        """Returns (certificate, key) for a common name, valid for localhost."""
        file = file or name
        names = self.folder / f"{file}.names"
        names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1\n")
        openssl(self.folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-nodes", "-subj", f"/CN={name}", "-keyout", f"{file}.key", "-out",
                f"{file}.csr")
        openssl(self.folder, "x509", "-req", "-in", f"{file}.csr", "-CA", "ca.pem", "-CAkey",
                "ca.key", "-CAcreateserial", "-days", 2, "-extfile", names, "-out",
                f"{file}.pem")
        return self.folder / f"{file}.pem", self.folder / f"{file}.key"
