"""The units of examples/service under a systemd that was booted for this test, by the commands of the page.

``DAFKA_TEST_SYSTEMD=1``, as root, with Debian's packages systemd-container, dbus and python3-venv.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from documents.markdown import ROOT, blocks

PAGE = ROOT / "examples" / "service" / "README.md"
_TOOLS = ("systemd-nspawn", "unshare", "openssl", "curl")

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("DAFKA_TEST_SYSTEMD"), reason="boots a systemd; set DAFKA_TEST_SYSTEMD=1"
    ),
    pytest.mark.timeout(500),
]

_STEPS = """
fails() {{ ! "$@"; }}
first() {{ systemctl show dafka --property MainPID; }}
soon() {{ for _ in $(seq 100); do "$@" && return; sleep 0.2; done; return 1; }}
ready() {{ curl --fail --silent http://127.0.0.1:9100/health | grep '"ready": true'; }}

cd /srv/service
{install}
ready                                       # the first look at the metrics, too, leaves it as it is
before=$(first)
{later}
[ "$before" != "$(first)" ]                 # it was restarted
ready
before=$(first)
systemctl reload dafka
curl --silent http://127.0.0.1:9100/metrics | grep kafka_controller_kafkacontroller_globaltopiccount
[ "$before" = "$(first)" ]

properties=/var/lib/dafka/admin.properties
printf '%s\\n' security.protocol=SASL_PLAINTEXT sasl.mechanism=SCRAM-SHA-256 \
    "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username=\\"admin\\" \
password=\\"$(cat /var/lib/dafka/admin.password)\\";" >$properties
kafka() {{ /opt/dafka/bin/dafka kafka "$@" --command-config $properties; }}
kafka topics create orders
seq 10 | kafka produce orders
systemctl kill --signal KILL dafka
soon systemctl is-active dafka
[ "$(kafka consume orders --exit | sort -n | tail -1)" = 10 ]
ls -ld /var/lib/dafka/backups/* && /opt/dafka/bin/dafka backup verify /var/lib/dafka/backups

mkdir /etc/systemd/system/dafka.service.d   # it turns no more: systemd restarts it
printf '[Service]\\nWatchdogSec=2\\n' >/etc/systemd/system/dafka.service.d/soon.conf
systemctl daemon-reload && systemctl restart dafka
before=$(first)
sleep 3; [ "$before" = "$(first)" ]
systemctl kill --signal STOP dafka
changed() {{ [ "$before" != "$(first)" ] && systemctl is-active dafka; }}
soon changed

systemctl stop dafka
[ "$(systemctl is-failed dafka)" = inactive ]
journalctl --unit dafka --output cat --no-pager | grep 'accepted records are committed'
echo 'retension = 7' >>/etc/dafka/broker.toml
fails systemctl start dafka
sleep 3
[ "$(systemctl is-failed dafka)" = failed ] # and is not tried again
journalctl --unit dafka --output cat --no-pager | grep "retension"

cd /srv/service
install -m 644 dafka-tower.service dafka-store.service /etc/systemd/system/
systemctl daemon-reload
systemctl start dafka-tower dafka-store
sleep 2
systemctl is-active dafka-tower dafka-store
systemctl stop dafka-store dafka-tower
[ "$(systemctl is-failed dafka-store)" = inactive ]
echo all was done
"""


def test_the_page_makes_a_service_of_systemd(tmp_path: Path) -> None:
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs root, and {missing}")
    install, later = (one.text for one in blocks(PAGE) if "systemd" in one.text or "systemctl" in one.text)
    venv, pip, *rest = install.splitlines()
    assert venv.startswith("python3 -m venv") and "pip install" in pip
    (tmp_path / "install").write_text(f"/usr/bin/{venv}\n" + pip.replace("dafka[", "/srv/source[") + "\n")
    later = later.replace("/opt/dafka/bin/pip install --upgrade dafka", "true")  # this one is the newest
    (tmp_path / "steps").write_text(_STEPS.format(install="\n".join(rest), later=later))
    source = tmp_path / "source"
    for name in (
        "compat",
        "dafka",
        "examples",
        *("pyproject.toml", "setup.cfg", "MANIFEST.in", "README.md", "LICENSE"),
    ):
        take = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        source.mkdir(exist_ok=True)
        take(ROOT / name, source / name)
    script = str(Path(__file__).with_name("booted.sh"))
    done = subprocess.run(
        ["unshare", "--mount", "bash", script, str(tmp_path), str(source)],
        capture_output=True,
        text=True,
        timeout=400,
    )
    said = (tmp_path / "said").read_text() if (tmp_path / "said").exists() else done.stdout + done.stderr
    assert said.rstrip().endswith("all was done"), said
