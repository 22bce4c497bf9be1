"""For `helm test`: asks the webhook behind its Service (name, address, port) for what it refuses, and so sees it."""

import http.client
import pathlib
import socket
import ssl
import sys

name, address, port = sys.argv[1:]
where = f"https://{name}:{port} ({address})"
authority = pathlib.Path("/etc/muster/authority/ca.crt")
context = ssl.create_default_context()
if authority.exists():
    context.load_verify_locations(authority)
else:
    print("no ca.crt in the Secret: the certificate is not looked at")
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
connection = http.client.HTTPConnection(name)
try:
    # By its address, as the apiserver does: no DNS is needed.
    plain = socket.create_connection((address, int(port)), timeout=30)
    connection.sock = context.wrap_socket(plain, server_hostname=name)
    connection.request("GET", "/validate/workloads")
    status = connection.getresponse().status
except OSError as error:
    sys.exit(f"{where} is not reached: {error}")
# Reviews are posted; a server that refuses a GET is a webhook of muster's.
if status != http.client.METHOD_NOT_ALLOWED:
    sys.exit(f"{where} answers with {status}, which is not muster's webhook")
print(f"{where} is muster's webhook")
