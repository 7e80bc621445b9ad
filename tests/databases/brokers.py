# SPDX-License-Identifier: MIT
"""A real Kafka of one test program: a single node without ZooKeeper, plain and with TLS and logins.

OUTBOX_TEST_KAFKA names the directory of its jars.
"""
import atexit
import base64
import json
import os
import shutil
import subprocess
import tempfile
import uuid

from clusters import free_port
from relays import until

MESSAGE_MAX = 200000  # bytes that the broker takes in one batch
USER, PASSWORD = "relay", "tell-no-one"
JAVA = ["setpriv", "--pdeathsig", "KILL", "java", "-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]

CERTIFICATES = """
new='-newkey rsa:2048 -nodes -days 2'
for ca in ca other; do openssl req -x509 $new -subj /CN=$ca -keyout $ca.key -out $ca.crt; done
openssl req $new -subj /CN=broker -keyout broker.key -out broker.csr
printf 'subjectAltName=DNS:localhost' >names
openssl x509 -req -in broker.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out broker.crt
cat broker.key broker.crt >broker.pem
"""

PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{plain},SASL_SSL://127.0.0.1:{secure},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{plain},SASL_SSL://localhost:{secure}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={dir}/data
num.partitions=4
message.max.bytes={message_max}
offsets.topic.replication.factor=1
ssl.keystore.type=PEM
ssl.keystore.location={dir}/broker.pem
sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
"""


class Kafka:
    """Started with the first use, ended with the program."""

    def __init__(self):
        self.jars = os.path.join(os.environ["OUTBOX_TEST_KAFKA"], "*")
        self.dir = tempfile.mkdtemp(prefix="outbox-kafka.")
        self.plain, self.secure, self.process = free_port(), free_port(), None
        atexit.register(self.remove)
        subprocess.run(["sh", "-ec", CERTIFICATES], cwd=self.dir, check=True, capture_output=True)
        with open(self.path("server.properties"), "w", encoding="utf-8") as file:
            file.write(PROPERTIES.format(dir=self.dir, plain=self.plain, secure=self.secure, controller=free_port(),
                                         message_max=MESSAGE_MAX, user=USER, password=PASSWORD))
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        done = subprocess.run([*JAVA, "-cp", self.jars, "kafka.tools.StorageTool", "format", "-t", cluster, "-c",
                               self.path("server.properties"), "--add-scram", f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        self.start()

    def path(self, name):
        return os.path.join(self.dir, name)

    def start(self):
        with open(self.path("log"), "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([*JAVA, "-cp", self.jars, "kafka.Kafka", self.path("server.properties")],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until("the broker answers", self.answers)

    def answers(self):
        with open(self.path("log"), encoding="utf-8") as log:
            assert self.process.poll() is None, log.read()[-2000:]
        return subprocess.run(["kcat", "-b", self.brokers(), "-L", "-m", "1"], capture_output=True, check=False).returncode == 0

    def kill(self):
        self.process.kill()
        self.process.wait()

    def remove(self):
        if self.process:
            self.kill()
        shutil.rmtree(self.dir)

    def brokers(self):
        return f"127.0.0.1:{self.plain}"

    def sink(self, *more):
        return ", ".join(["type: kafka", f'brokers: "{self.brokers()}"', "timeout: 10s", *more])

    def secure_sink(self, mechanism="PLAIN", password=PASSWORD, ca="ca.crt"):
        properties = ["security.protocol=SASL_SSL", f"sasl.mechanism={mechanism}", f"sasl.username={USER}",
                      f"sasl.password={password}", f"ssl.ca.location={self.path(ca)}", "broker.address.family=v4"]
        # in YAML's double quotes a \n ends a line
        return f'type: kafka, brokers: "localhost:{self.secure}", properties: "' + "\\n".join(properties) + '"'

    def read(self, topic):
        """All records of a topic, partition by partition."""
        done = subprocess.run(["kcat", "-b", self.brokers(), "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-J"],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        records = [json.loads(line) for line in done.stdout.splitlines()]
        for record in records:
            flat = record.get("headers", [])
            record["headers"] = dict(zip(flat[::2], flat[1::2]))
        return sorted(records, key=lambda record: (record["partition"], record["offset"]))
