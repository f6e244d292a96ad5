"""Rules for pages of other origins, preflights, and the headers of other answers.

The recordings read public objects. Here the same requests are signed.
"""

from harness.s3 import Headers
from harness.wire import Response, encode_head

from ..case import Case, document, scenario

ORIGIN = "https://localhost:4200"
CONTENT = b"test-cors"


def rule(*methods: str, origins: tuple[str, ...] = (ORIGIN,), **more: object) -> dict:
    """Returns the configuration of one rule."""
    return {"CORSRules": [{"AllowedOrigins": list(origins), "AllowedMethods": list(methods), **more}]}


def whole(*methods: str, origins: tuple[str, ...] = (ORIGIN,)) -> dict:
    """Returns the rule of most scenarios."""
    return rule(*methods, origins=origins, MaxAgeSeconds=3000, AllowedHeaders=["*"])


def compared(headers: dict[str, str]) -> dict[str, str]:
    """Returns the headers that are about CORS. The names in `Vary` have no order."""
    kept = {name.lower(): value for name, value in headers.items() if name.lower().startswith(("access-control-", "vary"))}
    if "vary" in kept:
        kept["vary"] = ", ".join(sorted(kept["vary"].split(", ")))
    return kept


class Page:
    """Requests of a page for one object."""

    def __init__(self, case: Case, key: str = "test-cors", rules: dict | None = None):
        self.case, self.bucket = case, case.bucket()
        self.target = f"/{self.bucket}/{key}"
        case.put(self.bucket, key, CONTENT)
        if rules:
            self.allow(rules)

    def allow(self, rules: dict) -> None:
        """Replaces the rules, if they are accepted: some are not, and the steps show it."""
        self.case.call("put_bucket_cors", Bucket=self.bucket, CORSConfiguration=rules)

    def preflight(self, target: str = "", **headers: str) -> Response:
        """Asks, as browsers do, without a signature."""
        head = encode_head("OPTIONS", target or self.target, [("Host", self.case.http.authority), *sent(headers)])
        with self.case.http.connect() as connection:
            connection.send(head)
            return connection.read_response("OPTIONS")

    def match(self, step: str, response: Response) -> None:
        """Compares status, CORS headers and body."""
        recorded = self.case.recorded[step]
        body = document(response) if response.body.startswith(b"<") else response.body.decode()
        found = {"StatusCode": response.status, "Headers": compared(dict(response.headers)), "Body": body}
        self.case.match(step, found, recorded=recorded | {"Headers": compared(recorded["Headers"])})

    def ask(self, step: str, method: str = "", origin: str = ORIGIN, target: str = "", **headers: str) -> None:
        """Asks for a method as a step."""
        asked = {"access_control_request_method": method} if method else {}
        self.match(step, self.preflight(target, **({"origin": origin} if origin else {}), **asked, **headers))

    def get(self, step: str, method: str = "GET", target: str = "", **headers: str) -> None:
        """Makes a request as a step."""
        self.match(step, self.case.raw(method, target or self.target, sent(headers)))


def sent(headers: dict[str, str]) -> Headers:
    """Returns headers with their names as they are sent."""
    return [(name.replace("_", "-"), value) for name, value in headers.items()]


@scenario("TestS3Cors::test_cors_http_options_no_config")
def preflight_without_rules(case: Case) -> None:
    page = Page(case)
    for step, headers in (
        ("no-origin", {}), ("with-origin-and-method", {"origin": "whatever", "access_control_request_method": "PUT"}),
        ("with-origin-no-method", {"origin": "whatever"}),
    ):
        case.match(f"options-{step}", document(page.preflight(**headers)))


@scenario("TestS3Cors::test_cors_http_get_no_config")
def get_without_rules(case: Case) -> None:
    page = Page(case)
    for headers in ({}, {"origin": "whatever"}):
        response = case.raw("GET", page.target, sent(headers))
        assert (response.status, response.body, compared(dict(response.headers))) == (200, CONTENT, {})


@scenario("TestS3Cors::test_cors_http_options_non_existent_bucket")
def preflight_without_bucket(case: Case) -> None:
    page = Page(case)
    missing = f"/{case.bucket_name()}/test-cors-options-no-bucket"
    case.match("options-no-origin", document(page.preflight(missing)))
    case.match("options-with-origin", document(page.preflight(missing, origin="whatever")))


@scenario("TestS3Cors::test_cors_match_origins")
def origins(case: Case) -> None:
    page = Page(case, rules=whole("GET", "PUT"))
    page.ask("opt-no-origin", origin="")
    page.get("get-no-origin")
    page.ask("opt-referer", "PUT", origin="", referer=ORIGIN)
    page.get("get-referer", referer=ORIGIN)
    for step, origin in (("right", ORIGIN), ("wrong", "http://localhost:4200")):
        page.ask(f"opt-{step}-origin", "PUT", origin)
        page.get(f"get-{step}-origin", origin=origin)
    page.allow(whole("GET", "PUT", origins=("*",)))
    page.ask("opt-random-wildcard-origin", "PUT", "http://random:1234")
    page.get("get-random-wildcard-origin", origin="http://random:1234")


@scenario("TestS3Cors::test_cors_options_match_partial_origin")
def partial_origin(case: Case) -> None:
    page = Page(case, rules=whole("GET", "PUT", origins=("http://*.origin.com",)))
    page.ask("options_match_partial_origin", "GET", "http://test.origin.com", f"/{page.bucket}")


@scenario("TestS3Cors::test_cors_options_fails_partial_origin")
def partial_origin_fails(case: Case) -> None:
    page = Page(case, rules=whole("GET", "PUT", origins=("http://*.origin.com",)))
    page.ask("options_fails_partial_origin", "GET", "http://test.origin.com/", f"/{page.bucket}")


@scenario("TestS3Cors::test_cors_match_methods")
def methods(case: Case) -> None:
    page = Page(case, rules=whole("GET"))
    page.ask("opt-get", "GET")
    page.get("get-wrong-op", origin=ORIGIN, access_control_request_method="PUT")
    page.get("get-op", origin=ORIGIN)
    page.ask("opt-put", "PUT", target=f"{page.target}new")
    page.get("put-op", "PUT", f"{page.target}new", origin=ORIGIN)


@scenario("TestS3Cors::test_cors_match_headers")
def allowed_headers(case: Case) -> None:
    payer, owner, encryption = "x-amz-request-payer", "x-amz-expected-bucket-owner", "x-amz-server-side-encryption"
    page = Page(case, rules=whole("GET"))

    def ask(step: str, names: str) -> None:
        page.ask(step, "GET", access_control_request_headers=names)

    ask("opt-get", payer)
    ask("opt-get-two", f"{payer}, {owner}")
    page.get("get-op", origin=ORIGIN, x_amz_request_payer="requester")
    names = [owner, f"{encryption}-customer-algorithm", "x-AMZ-server-SIDE-encryption"]
    page.allow(rule("GET", MaxAgeSeconds=3000, AllowedHeaders=names))
    case.step("get-bucket-cors-casing", "get_bucket_cors", Bucket=page.bucket)
    ask("opt-get-non-allowed", payer)
    ask("opt-get-allowed", owner)
    ask("opt-get-allowed-diff-casing", f"x-AMZ-expected-BUCKET-owner, {encryption}")
    ask("opt-get-allowed-no-space", f"{owner},{encryption}")
    page.get("get-non-allowed-with-acl", origin=ORIGIN, access_control_request_headers=payer)
    page.get("get-non-allowed", origin=ORIGIN, x_amz_request_payer="requester")


@scenario("TestS3Cors::test_cors_expose_headers")
def exposed_headers(case: Case) -> None:
    exposed = ["x-amz-id-2", "x-amz-request-id", "x-amz-request-payer"]
    Page(case, rules=rule("GET", origins=("*",), ExposeHeaders=exposed)).ask("opt-get", "GET", "localhost:4566")


@scenario("TestS3Cors::test_put_cors_default_values")
def defaults(case: Case) -> None:
    page = Page(case, rules=rule("GET", origins=("*",)))
    page.ask("opt-get", "GET", "localhost:4566")
    page.ask("opt-get-headers", "GET", "localhost:4566", access_control_request_headers="x-amz-request-payer")


@scenario("TestS3Cors::test_get_cors")
def read_rules(case: Case) -> None:
    bucket = {"Bucket": case.bucket()}
    case.step("get-cors-no-set", "get_bucket_cors", **bucket)
    case.do("put_bucket_cors", **bucket, CORSConfiguration=rule("GET", origins=("*",)))
    case.step("get-cors-after-set", "get_bucket_cors", **bucket)


@scenario("TestS3Cors::test_put_cors")
def write_rules(case: Case) -> None:
    bucket = {"Bucket": case.bucket()}
    names = ["x-amz-expected-bucket-owner", "x-amz-server-side-encryption-customer-algorithm"]
    exact = ("https://test.com", "https://app.test.com", "http://test.com:80")
    rules = rule("GET", "PUT", "HEAD", origins=exact, MaxAgeSeconds=3000, AllowedHeaders=names)
    case.step("put-cors", "put_bucket_cors", **bucket, CORSConfiguration=rules)
    case.step("get-cors", "get_bucket_cors", **bucket)


@scenario("TestS3Cors::test_put_cors_invalid_rules")
def bad_rules(case: Case) -> None:
    bucket = {"Bucket": case.bucket()}
    bad = rule("GET", "PUT", "HEAD", "MYMETHOD", origins=("*", "https://test.com"))
    case.step("put-cors-exc", "put_bucket_cors", **bucket, CORSConfiguration=bad)
    case.step("put-cors-exc-empty", "put_bucket_cors", **bucket, CORSConfiguration={"CORSRules": []})


@scenario("TestS3Cors::test_put_cors_empty_origin")
def empty_origin(case: Case) -> None:
    bucket = {"Bucket": case.bucket()}
    case.call("put_bucket_cors", **bucket, CORSConfiguration=rule("GET", "PUT", "HEAD", origins=("",)))
    case.step("get-cors-empty", "get_bucket_cors", **bucket)


@scenario("TestS3Cors::test_delete_cors")
def deleted_rules(case: Case) -> None:
    bucket = {"Bucket": case.bucket()}
    case.step("delete-cors-before-set", "delete_bucket_cors", **bucket)
    case.step("put-cors", "put_bucket_cors", **bucket, CORSConfiguration=rule("GET", origins=("*",)))
    case.step("get-cors", "get_bucket_cors", **bucket)
    case.step("delete-cors", "delete_bucket_cors", **bucket)
    case.step("get-cors-deleted", "get_bucket_cors", **bucket)
