"""Documents that are hard to read: floods of nothing, strings, numbers, Unicode, operations, variables."""

from __future__ import annotations

from typing import Any

from tests.contract.http.data import ANN
from tests.proof.attacks.case import STREAM, Case, family, post, times, tower

U = f'user(id: "{ANN}")'


def named(value: str) -> str:
    """A filter by a literal."""
    return f"{{ users(first: 1, where: {{name: {{eq: {value}}}}}) {{ id }} }}"


def nested(levels: int, inside: Any = None) -> Any:
    """Lists in lists, as a value."""
    found: Any = inside
    for _ in range(levels):
        found = [found]
    return found


def ring(operations: int, fragments: int) -> str:
    """Many operations, each of which leads through all fragments: rules that look at operations do all of it for each."""
    parts = " ".join(f"fragment F{n} on User {{ ...F{n + 1} }}" for n in range(fragments))
    heads = times(operations, "query Q§($a: ID!) { user(id: $a) { ...F0 } }")
    return f"{heads} {parts} fragment F{fragments} on User {{ id }}"


FLOODS = family(
    "flood",
    [
        post("99 KB of comment", "{ __typename } #" + "x" * 99_000, "answered"),
        post("1,000 comments", "{ __typename } " + "#\n" * 1_000, "answered"),
        post("49,000 comments", "{ __typename } " + "#\n" * 49_000, "answered"),
        post(
            "20,000 comments before a float",
            "{ users(first: " + "#\n" * 20_000 + "1.5) { id } }",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "20,000 comments before what is no token",
            "{ __typename " + "#\n" * 20_000 + "? }",
            "other",
            "GRAPHQL_PARSE_FAILED",
        ),
        post("101 KB of comment", "{ __typename } #" + "#" * 103_000, "text", "TOO_COMPLEX"),
        post("99 KB of commas", "{ __typename " + "," * 99_000 + "}", "answered"),
        post("99 KB of white space", "{ __typename " + " \t\n\r" * 24_000 + "}", "answered"),
        post("30,000 byte order marks", "{ __typename " + "\ufeff" * 30_000 + "}", "answered"),
        post("99 KB of opening brackets", "{" * 99_000, "text", "TOO_COMPLEX"),
        post("1,900 opening brackets", "{" * 1_900, "text", "TOO_DEEP"),
        post("99 KB of closing brackets", "}" * 99_000, "text", "TOO_COMPLEX"),
        post("99 KB of colons", "{ a" + ":" * 99_000 + " }", "text", "TOO_COMPLEX"),
        post("99 KB of dots", "{ " + "." * 99_000 + " }", "text", "TOO_COMPLEX"),
        post("1,900 ampersands", "{ " + "&" * 1_900 + " }", "other", "GRAPHQL_PARSE_FAILED"),
        post("99 KB of quotation marks", "{ a(b: " + '"' * 99_000 + ") }", "text", "TOO_COMPLEX"),
        post("99 KB of backslashes in a string", '{ a(b: "' + "\\" * 99_000 + '") }', "text", "TOO_COMPLEX"),
        post("99 KB of block quotes that are escaped", '{ a(b: """' + '\\"""' * 24_000 + ") }", "text", "TOO_COMPLEX"),
        post("99 KB of half-closed block quotes", '{ a(b: """' + '"" ' * 32_000 + ") }", "text", "TOO_COMPLEX"),
        post(
            "1,600 empty strings in lists",
            "{ a(b: [" + ("[" + '"" ' * 200 + "]") * 8 + "]) }",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post("1,900 empty strings", "{ a(b: [" + '"" ' * 1_900 + "]) }", "text", "TOO_COMPLEX"),
        post("99 KB of minus signs", "{ a(b: " + "-" * 99_000 + ") }", "text", "TOO_COMPLEX"),
        post("1e1e1e…", "{ users(first: " + "1e" * 40_000 + ") { id } }", "text", "TOO_COMPLEX"),
        post("1.1.1.…", "{ users(first: " + "1." * 40_000 + ") { id } }", "text", "TOO_COMPLEX"),
        post("nothing", "", "other", "GRAPHQL_PARSE_FAILED"),
        post("nothing but a comment", "# { users { id } }", "other", "GRAPHQL_PARSE_FAILED"),
        post("an empty selection", "{ }", "other", "GRAPHQL_PARSE_FAILED"),
        post("an empty selection inside", "{ users { } }", "other", "GRAPHQL_PARSE_FAILED"),
        post("brackets that never close", "{ users { id", "other", "GRAPHQL_PARSE_FAILED"),
        post("brackets that close too often", "{ __typename }" + "}" * 500, "other", "GRAPHQL_PARSE_FAILED"),
    ],
)


STRINGS = family(
    "string",
    [
        post("4,096 bytes", named('"' + "x" * 4_096 + '"'), "answered"),
        post("4,097 bytes", named('"' + "x" * 4_097 + '"'), "text", "TOO_COMPLEX"),
        post("4,097 bytes in few characters", named('"' + "😀" * 1_025 + '"'), "text", "TOO_COMPLEX"),
        post("90 KB", named('"' + "x" * 90_000 + '"'), "text", "TOO_COMPLEX"),
        post("a block of 90 KB", named('"""' + "x" * 90_000 + '"""'), "text", "TOO_COMPLEX"),
        post("a block of 90,000 lines", named('"""' + "\n" * 90_000 + '"""'), "text", "TOO_COMPLEX"),
        post(
            "a block of 2,000 lines, each indented more",
            named('"""' + "\n".join(" " * (n % 60) + "x" for n in range(110)) + '"""'),
            "answered",
        ),
        post(
            "22 of 4 KB",
            "{ users(first: 1, where: {name: {in: [" + ('"' + "x" * 4_000 + '" ') * 22 + "]}}) { id } }",
            "answered",
        ),
        post("90 KB of escapes", named('"' + "\\u0041" * 15_000 + '"'), "text", "TOO_COMPLEX"),
        post("never ends", '{ users(where: {name: {eq: "x', "other", "GRAPHQL_PARSE_FAILED"),
        post("ends at the line", named('"x\ny"'), "other", "GRAPHQL_PARSE_FAILED"),
        post("a block that never ends", '{ users(where: {name: {eq: """x', "other", "GRAPHQL_PARSE_FAILED"),
        post(
            "a block of 90 KB that never ends", '{ users(where: {name: {eq: """' + "x" * 90_000, "text", "TOO_COMPLEX"
        ),
        post("an escape that is none", named('"\\x41"'), "other", "GRAPHQL_PARSE_FAILED"),
        post("half an escape", named('"\\u00"'), "other", "GRAPHQL_PARSE_FAILED"),
        post("NUL, escaped", named('"\\u0000"'), "other", "BAD_USER_INPUT"),
        post("NUL", named('"\x00"'), "other", "BAD_USER_INPUT"),
        post("SQL", named('"\'; DROP TABLE users; --"'), "answered"),
        post("SQL of each kind", named('"\\\\\' OR 1=1 /* $1 ?1 :a {0} %s */"'), "answered"),
        post("SQL as a name", "{ users(first: 1) { id; DROP TABLE users } }", "other", "GRAPHQL_PARSE_FAILED"),
        post(
            "patterns of LIKE",
            '{ users(first: 1, where: {name: {contains: "' + "%_" * 128 + '"}}) { id } }',
            "answered",
        ),
        post(
            "patterns of regular expressions",
            '{ users(first: 1, where: {name: {startsWith: "^(a+)+$"}}) { id } }',
            "answered",
        ),
    ],
)


UNICODE = family(
    "unicode",
    [
        post("half a surrogate pair, escaped in the document", named('"\\ud800"'), "other", "GRAPHQL_PARSE_FAILED"),
        post("half a surrogate pair in braces", named('"\\u{d800}"'), "other", "GRAPHQL_PARSE_FAILED"),
        post("halves in the wrong order", named('"\\udc00\\ud800"'), "other", "GRAPHQL_PARSE_FAILED"),
        post("beyond the last character", named('"\\u{110000}"'), "other", "GRAPHQL_PARSE_FAILED"),
        post("an escape of 3,000 zeros", named('"\\u{' + "0" * 3_000 + '41}"'), "other", "GRAPHQL_PARSE_FAILED"),
        post("half a surrogate pair in the JSON", named('"\ud800"'), "text", "BAD_REQUEST"),
        post("a noncharacter", named('"\uffff"'), "answered"),
        post("right to left", named('"\u202eanna\u202c"'), "answered"),
        post("a name that reads from right to left", "{ \u202eresu(id: 1) { id } }", "other", "GRAPHQL_PARSE_FAILED"),
        post("a name of letters beyond ASCII", "{ üsers { id } }", "other", "GRAPHQL_PARSE_FAILED"),
        post("an astral name", "{ 𝒖sers { id } }", "other", "GRAPHQL_PARSE_FAILED"),
        post("20,000 astral names", "{ " + "𝒖 " * 19_000 + "}", "text", "TOO_COMPLEX"),
        post("a name with a soft hyphen", "{ us\u00aders { id } }", "other", "GRAPHQL_PARSE_FAILED"),
        post("space that is none", "{\u00a0__typename\u2003}", "other", "GRAPHQL_PARSE_FAILED"),
        post("line ends that are none", "{ __typename # x\u2028 }\n}", "answered"),
        post("digits of other scripts", "{ users(first: ١) { id } }", "other", "GRAPHQL_PARSE_FAILED"),
        post("wide digits", "{ users(first: １) { id } }", "other", "GRAPHQL_PARSE_FAILED"),
        post("the same text, composed otherwise", named('"Zoe\u0308"'), "answered"),
        post("4,000 combining marks", named('"' + "e" + "\u0301" * 2_000 + '"'), "answered"),
        post("NUL between tokens", "{ \x00__typename }", "other", "GRAPHQL_PARSE_FAILED"),
        post("a control character between tokens", "{ \x1b[2J__typename }", "other", "GRAPHQL_PARSE_FAILED"),
    ],
)


def first(value: str) -> str:
    return f"{{ users(first: {value}) {{ id }} }}"


NUMBERS = family(
    "number",
    [
        post("2 to the 31st", first("2147483648"), "other", "GRAPHQL_VALIDATION_FAILED"),
        post("2 to the 63rd", first("9223372036854775808"), "other", "GRAPHQL_VALIDATION_FAILED"),
        post("1e400", first("1e400"), "other", "GRAPHQL_VALIDATION_FAILED"),
        post("90,000 digits", first("9" * 90_000), "text", "TOO_COMPLEX"),
        post("4,000 digits", first("9" * 4_000), "other", "GRAPHQL_VALIDATION_FAILED"),
        post("4,000 digits for an id", "{ user(id: %s) { id } }" % ("9" * 4_000), "answered"),
        post("an exponent of 3,000 digits", first("1e" + "9" * 3_000), "other", "GRAPHQL_VALIDATION_FAILED"),
        post("minus zero", first("-0"), "other", "BAD_USER_INPUT"),
        post("zero", first("0"), "other", "BAD_USER_INPUT"),
        post("minus one", first("-1"), "other", "BAD_USER_INPUT"),
        post("zeros in front", first("00020"), "other", "GRAPHQL_PARSE_FAILED"),
        post("a float for an int", first("20.0"), "other", "GRAPHQL_VALIDATION_FAILED"),
        post("plus", first("+1"), "other", "GRAPHQL_PARSE_FAILED"),
        post("hexadecimal", first("0x20"), "other", "GRAPHQL_PARSE_FAILED"),
        post("with an underscore", first("1_000"), "other", "GRAPHQL_PARSE_FAILED"),
        post("NaN", first("NaN"), "other", "GRAPHQL_VALIDATION_FAILED"),
        post("a text", first('"20"'), "other", "GRAPHQL_VALIDATION_FAILED"),
    ],
)


OPERATIONS = family(
    "operation",
    [
        post("100, none named", times(100, "query Q§ { __typename }"), "prepass", "GRAPHQL_VALIDATION_FAILED"),
        post("390, none named", times(390, "query Q§ { __typename }"), "text", "TOO_COMPLEX"),
        post("100, one named", times(100, "query Q§ { __typename }"), "answered", operation="Q7"),
        post(
            "100 of one name",
            times(100, "query Q { __typename }"),
            "prepass",
            "GRAPHQL_VALIDATION_FAILED",
            operation="Q",
        ),
        post("390 of one name", times(390, "query Q { __typename }"), "text", "TOO_COMPLEX", operation="Q"),
        post("38, each through 60 fragments", ring(38, 60), "prepass", "TOO_COMPLEX", {"a": ANN}, "Q1"),
        post("12, each through 55 fragments", ring(12, 55), "answered", variables={"a": ANN}, operation="Q1"),
        post("30, each through 55 fragments", ring(30, 55), "prepass", "TOO_COMPLEX", {"a": ANN}, "Q1"),
        post("40, each through 130 fragments", ring(40, 130), "text", "TOO_DEEP", {"a": ANN}, "Q1"),
        post("20, each through 180 fragments", ring(20, 180), "text", "TOO_DEEP", {"a": ANN}, "Q1"),
        post("one through 240 fragments", ring(1, 240), "text", "TOO_DEEP", {"a": ANN}, "Q0"),
        post(
            "one named and one not",
            "query A { __typename } { __typename }",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
            operation="A",
        ),
        post("a name that none has", "query A { __typename }", "prepass", "GRAPHQL_VALIDATION_FAILED", operation="B"),
        post(
            "a name of 500 KB",
            "query A { __typename }",
            "prepass",
            "GRAPHQL_VALIDATION_FAILED",
            operation="B" * 500_000,
        ),
        post(
            "a name of JavaScript",
            "query A { __typename }",
            "prepass",
            "GRAPHQL_VALIDATION_FAILED",
            operation="__proto__",
        ),
        post(
            "a mutation behind a query",
            'query A { __typename } mutation B { deleteUser(id: "1") { id } }',
            "other",
            "UNAUTHENTICATED",
            operation="B",
        ),
        post("a subscription without a stream", "subscription { postChanged { rowId } }", "prepass", "NOT_ACCEPTABLE"),
        post(
            "a subscription with two roots",
            "subscription { postChanged { rowId } userChanged { rowId } }",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
            accept=STREAM,
        ),
        post(
            "a subscription with two roots by a fragment",
            "subscription { ...A } fragment A on Subscription { postChanged { rowId } userChanged { rowId } }",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
            accept=STREAM,
        ),
        post(
            "a subscription with 30 roots",
            f"subscription {{ {times(30, 'a§: postChanged { rowId }')} }}",
            "prepass",
            "TOO_COMPLEX",
            accept=STREAM,
        ),
        post(
            "a subscription to the schema",
            "subscription { __schema { types { name } } }",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
            accept=STREAM,
        ),
        post(
            "a subscription of which all is skipped",
            "subscription { postChanged @skip(if: true) { id } }",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
            accept=STREAM,
        ),
        post("a schema", "schema { query: Q } type Q { a: Int }", "prepass", "GRAPHQL_VALIDATION_FAILED"),
        post(
            "30 types beside a query",
            "{ __typename } " + times(30, "type T§ { a: Int }"),
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post("280 types beside a query", "{ __typename } " + times(280, "type T§ { a: Int }"), "text", "TOO_COMPLEX"),
        post(
            "extensions of types", "{ __typename } extend type Query { a: Int }", "other", "GRAPHQL_VALIDATION_FAILED"
        ),
    ],
)


WHERE = "query($w: UserWhere) { users(first: 1, where: $w) { id } }"

VARIABLES = family(
    "variable",
    [
        post(
            "100 that nobody uses",
            f"query({times(100, '$v§: Int')}) {{ __typename }}",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post("390 that nobody uses", f"query({times(390, '$v§: Int')}) {{ __typename }}", "text", "TOO_COMPLEX"),
        post(
            "100 of one name",
            f"query({times(100, '$v: Int')}) {{ users(first: $v) {{ id }} }}",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "390 of one name", f"query({times(390, '$v: Int')}) {{ users(first: $v) {{ id }} }}", "text", "TOO_COMPLEX"
        ),
        post(
            "50 that nobody declares",
            f"{{ users(where: {{or: [{times(50, '{name: {eq: $v§}}')}]}}) {{ id }} }}",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "190 that nobody declares",
            f"{{ users(where: {{or: [{times(190, '{name: {eq: $v§}}')}]}}) {{ id }} }}",
            "text",
            "TOO_COMPLEX",
        ),
        post(
            "of a type in 60 lists",
            f"query($a: {tower(60, '[', 'Int', ']')}) {{ users(first: $a) {{ id }} }}",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post("of a type in 65 lists", f"query($a: {tower(65, '[', 'Int', ']')}) {{ __typename }}", "text", "TOO_DEEP"),
        post(
            "of a type in 900 lists", f"query($a: {tower(900, '[', 'Int', ']')}) {{ __typename }}", "text", "TOO_DEEP"
        ),
        post(
            "of 100 types that are none",
            f"query({times(100, '$v§: Nothing§!')}) {{ __typename }}",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "of 190 types that are none",
            f"query({times(190, '$v§: Nothing§!')}) {{ __typename }}",
            "text",
            "TOO_COMPLEX",
        ),
        post(
            "with a default in 900 lists",
            f"query($a: [Int] = {tower(900, '[', '1', ']')}) {{ __typename }}",
            "text",
            "TOO_DEEP",
        ),
        post(
            "with a default of 250 values",
            f"query($a: [Int] = [{times(250, '1')}]) {{ __typename }}",
            "other",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        post(
            "with a default of 900 values",
            f"query($a: [Int] = [{times(900, '1')}]) {{ __typename }}",
            "text",
            "TOO_COMPLEX",
        ),
        post(
            "with a default of itself",
            "query($a: Int = $a) { users(first: $a) { id } }",
            "other",
            "GRAPHQL_PARSE_FAILED",
        ),
        post("64 levels deep", WHERE, "other", "BAD_USER_INPUT", {"w": nested(62)}),
        post("66 levels deep", WHERE, "text", "TOO_DEEP", {"w": nested(65)}),
        post("that nobody asked for, 66 levels deep", "{ __typename }", "text", "TOO_DEEP", {"w": nested(65)}),
        post("an object 66 levels deep", WHERE, "text", "TOO_DEEP", {"w": {"not": nested(64)}}),
        post("6,000 values", WHERE, "other", "TOO_COMPLEX", {"w": {"name": {"in": ["x"] * 6_000}}}),
        post("300,000 values", WHERE, "other", "TOO_COMPLEX", {"w": {"name": {"in": [0] * 300_000}}}),
        post("9,000 values that nobody asked for", "{ __typename }", "answered", variables={"w": [0] * 9_000}),
        post("300,000 values that nobody asked for", "{ __typename }", "text", "TOO_COMPLEX", {"w": [0] * 300_000}),
        post("50,000 keys", WHERE, "other", "TOO_COMPLEX", {"w": {f"k{n}": 1 for n in range(50_000)}}),
        post("9,000 that nobody declares", "{ __typename }", "answered", variables={f"k{n}": 1 for n in range(9_000)}),
        post(
            "50,000 that nobody declares", "{ __typename }", "text", "TOO_COMPLEX", {f"k{n}": 1 for n in range(50_000)}
        ),
        post("50 faults", WHERE, "other", "BAD_USER_INPUT", {"w": {"or": [{"nope": 1}] * 50}}),
        post("2,000 faults", WHERE, "other", "TOO_COMPLEX", {"w": {"or": [{"nope": 1}] * 2_000}}),
        post("251 in a list", WHERE, "other", "BAD_USER_INPUT", {"w": {"name": {"in": ["x"] * 251}}}),
        post("a text of 900 KB", WHERE, "answered", variables={"w": {"name": {"eq": "x" * 900_000}}}),
        post("NUL", WHERE, "other", "BAD_USER_INPUT", {"w": {"name": {"eq": "\x00"}}}),
        post("a key of 900 KB", WHERE, "other", "BAD_USER_INPUT", {"w": {"x" * 900_000: 1}}),
        post(
            "keys of JavaScript", WHERE, "other", "BAD_USER_INPUT", {"w": {"__proto__": {"eq": "x"}, "constructor": 1}}
        ),
        post("a list for a text", WHERE, "other", "BAD_USER_INPUT", {"w": {"name": {"eq": [["x"]]}}}),
        post(
            "a number beyond an int",
            "query($n: Int) { users(first: $n) { id } }",
            "other",
            "BAD_USER_INPUT",
            {"n": 2**31},
        ),
        post(
            "a number beyond 64 bits",
            "query($n: Int) { users(first: $n) { id } }",
            "other",
            "BAD_USER_INPUT",
            {"n": 2**64},
        ),
        post("a float for an int", "query($n: Int) { users(first: $n) { id } }", "other", "BAD_USER_INPUT", {"n": 1.5}),
        post(
            "null where there must be something",
            "query($n: Int!) { users(first: $n) { id } }",
            "other",
            "BAD_USER_INPUT",
            {"n": None},
        ),
        post(
            "a page size of null", "query($n: Int) { users(first: $n) { id } }", "other", "BAD_USER_INPUT", {"n": None}
        ),
    ],
)

CASES: dict[str, Case] = FLOODS | STRINGS | UNICODE | NUMBERS | OPERATIONS | VARIABLES
