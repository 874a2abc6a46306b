# SPDX-License-Identifier: Apache-2.0
"""nginx and HAProxy as gRPC load balancers for several servers. Each is a process.

The settings are for long streams: bodies of any size, streams that may be idle for days, large
windows and buffers.
"""

import shutil

import harness

NGINX = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;

    client_max_body_size 0;          # InsertStream is one request that never ends
    client_body_timeout 7d;          # and may be idle
    keepalive_requests 1000000;
    http2_body_preread_size 1m;
    http2_chunk_size 64k;
    http2_recv_buffer_size 1m;

    upstream replay {{
{servers}
        keepalive 16;
    }}
    server {{
        listen 127.0.0.1:{port} http2;
        location / {{
            grpc_pass grpc://replay;
            grpc_read_timeout 7d;
            grpc_send_timeout 7d;
            grpc_buffer_size 256k;
            grpc_socket_keepalive on;
        }}
    }}
}}
"""

HAPROXY = """
global
    maxconn 1000
    tune.bufsize 65536
    tune.h2.initial-window-size 1048576
    tune.h2.max-concurrent-streams 1000

defaults
    mode {mode}
    timeout connect 5s
    timeout client 7d
    timeout server 7d
    timeout tunnel 7d
    option redispatch
    retries 3

frontend grpc
    bind 127.0.0.1:{port}{proto}
    default_backend replay

backend replay
    balance roundrobin
{servers}
"""


def program(name):
    """Returns the path of a proxy, also in /usr/sbin, which is not on every user's PATH."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


class Nginx(harness.Server):
    name = "nginx"

    def __init__(self, servers, folder):
        super().__init__(folder)
        self.servers = servers

    def command(self):
        config = self.folder / "nginx.conf"
        servers = "\n".join(f"        server 127.0.0.1:{s.port};" for s in self.servers)
        config.write_text(NGINX.format(folder=self.folder, port=self.port, servers=servers))
        return [program("nginx"), "-p", self.folder, "-e", self.folder / "nginx-start.log",
                "-c", config]


class HaProxy(harness.Server):
    """HAProxy. In HTTP mode it balances calls, in TCP mode connections."""

    name = "haproxy"
    mode = "http"

    def __init__(self, servers, folder):
        super().__init__(folder)
        self.servers = servers

    def command(self):
        config = self.folder / "haproxy.cfg"
        proto = " proto h2" if self.mode == "http" else ""
        servers = "\n".join(f"    server s{s.port} 127.0.0.1:{s.port}{proto}"
                            for s in self.servers)
        config.write_text(HAPROXY.format(mode=self.mode, port=self.port, proto=proto,
                                         servers=servers))
        return [program("haproxy"), "-db", "-f", config]


class HaProxyTcp(HaProxy):
    name = "haproxy-tcp"
    mode = "tcp"
