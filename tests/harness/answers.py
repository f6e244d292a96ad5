"""Other answers for a page: what a server would say in a state that a test cannot bring about."""

from .page import Page


def change_answers(page: Page, changes: dict[str, str]) -> None:
    """Changes the answers to reads until the page is loaded again: by path, statements of JavaScript.

    They work on `body` and `status`. `days(n)` is the time in so many days. The answers of a batch are changed too.
    """
    # The page forbids `eval`, so the statements are part of the script.
    cases = " ".join(f"if (path === '{path}') {{ {change} }}" for path, change in changes.items())
    page.run(f"""async () => {{
        const send = window.fetch;
        const days = (number) => new Date(Date.now() + number * 86400000).toISOString();
        const change = (path, {{status, body}}) => {{ {cases} return {{status, body}}; }};
        window.fetch = async (target, options) => {{
            const {{pathname, searchParams}} = new URL(target, location);
            const response = await send(target, options);
            const isBatch = pathname === "/batch";
            if (!response.ok || !(isBatch || {list(changes)}.includes(pathname))) return response;
            const body = await response.json();
            if (isBatch) {{
                const paths = searchParams.getAll("path").map((path) => path.split("?")[0]);
                const answers = body.answers.map((answer, index) => change(paths[index], answer));
                return new Response(JSON.stringify({{answers}}));
            }}
            const changed = change(pathname, {{status: response.status, body}});
            return new Response(JSON.stringify(changed.body), {{status: changed.status}});
        }};
    }}""")
