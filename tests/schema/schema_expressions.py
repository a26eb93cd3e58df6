"""CEL expressions, and the value on which they are evaluated."""

from schema_documents import JsonObject

EXPRESSIONS = [
    # presence
    "self.i == 5", "self.i < 6 && self.i >= 5", "self.i != 4", "self.n > 1", "self.n == 2.0", "self.i > 4.5",
    "self.s == 'abc'", "self.s + 'd' == 'abcd'", "self.b", "!self.b || true", "has(self.s)", "!has(self.opt)",
    "has(self.opt) && self.opt.x == 'a' || true", "self.opt.x == 'a'", "self.l == ['a', 'b']", "'a' in self.l", "!('c' in self.l)",
    "self.l[0] == 'a'", "self.l[5] == 'a'", "self.m['a'] == 1", "self.m.a == 1", "self.m['z'] == 1", "'a' in self.m",
    "self.m.all(k, self.m[k] > 0)", "self.l.all(x, size(x) == 1)", "self.l.exists(x, x == 'b')", "self.l.exists_one(x, x == 'b')",
    "self.l.map(x, x + x) == ['aa', 'bb']", "self.l.map(x, x == 'a', x + x) == ['aa']", "self.l.filter(x, x == 'b') == ['b']",
    "self.objs.all(o, o.v > 0)", "self.objs.exists(o, o.k == 'x' && o.v == 1)", "self.objs[0].k == 'x'",
    "type(self.ios) == string", "self.ios == '50%'", "type(self.ios) == int ? self.ios < 5 : self.ios.endsWith('%')", "self.ios > 5",
    "self.t > timestamp('2020-01-01T00:00:00Z')", "self.t.getFullYear() == 2024", "self.t + duration('1h') == timestamp('2024-01-02T04:04:05Z')",
    "self.d == duration('90m')", "self.d.getMinutes() == 90", "self.by == b'abc'", "string(self.by) == 'abc'",
    "self.a__dash__b == 'dash'", "self.__namespace__ == 'ns'", "self.x__dot__y__slash__z__underscores__w == 'odd'",
    "self.emb.kind == 'Pod'", "self.emb.metadata.name == 'p'", "self.emb.apiVersion == 'v1'",
    # arithmetic
    "1 + 2 * 3 == 7", "7 / 2 == 3", "-7 / 2 == -3", "-7 % 3 == -1", "7 % -3 == 1", "1.0 / 0.0 > 1.0", "1 / 0 == 1", "9223372036854775807 + 1 > 0",
    "2.5 * 2.0 == 5.0", "1u + 2u == 3u", "1u - 2u == 0u", "-(-3) == 3", "10 - 3 - 2 == 5", "5 > 3 == true", "0x10 == 16", "1e3 == 1000.0",
    # conversions
    "int('42') == 42", "int(2.9) == 2", "double('2.5') == 2.5", "string(5) == '5'", "string(2.5) == '2.5'",
    "string(1e21) == '1e+21'", "string(true) == 'true'", "bool('true')", "uint(3) == 3u", "bytes('a') == b'a'", "string(b'a') == 'a'",
    "string(duration('1h30m')) == '5400s'", "string(timestamp('2024-01-02T03:04:05.5Z')) == '2024-01-02T03:04:05.5Z'", "duration('1h') > duration('59m')",
    "timestamp('2024-01-02T03:04:05Z').getDayOfWeek() == 2", "timestamp('2024-01-02T03:04:05Z').getDayOfYear() == 1",
    "timestamp('2024-01-02T03:04:05Z').getHours('Europe/Berlin') == 4", "timestamp('2024-01-02T03:04:05Z').getHours('-02:00') == 1",
    "timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z') == duration('24h')", "int(timestamp('1970-01-01T00:01:00Z')) == 60",
    "type(1) == int", "type('a') == string", "type([]) == list", "type({}) == map", "type(1.0) == double", "type(null) == null_type", "dyn(1) == 1.0",
    # strings
    "'hello'.charAt(1) == 'e'", "'hello'.charAt(9) == 'e'", "'hello'.indexOf('l') == 2", "'hello'.indexOf('l', 3) == 3", "'hello'.lastIndexOf('l') == 3",
    "'HeLLo'.lowerAscii() == 'hello'", "'hi'.upperAscii() == 'HI'", "'a-b-c'.replace('-', '+') == 'a+b+c'", "'a-b-c'.replace('-', '+', 1) == 'a+b-c'",
    "'a,b,c'.split(',') == ['a', 'b', 'c']", "'a,b,c'.split(',', 2) == ['a', 'b,c']", "'abc'.split('') == ['a', 'b', 'c']", "'hello'.substring(1) == 'ello'",
    "'hello'.substring(1, 3) == 'el'", "'hello'.substring(3, 1) == 'el'", "'hello'.substring(9) == 'el'", "' a '.trim() == 'a'",
    "self.l.join() == 'ab'", "self.l.join('-') == 'a-b'", "'abc'.contains('b') && 'abc'.startsWith('a') && 'abc'.endsWith('c')", "'abc'.matches('^a.c$')", "matches('abc', 'b')",
    "'abc 123'.find('[0-9]+') == '123'", "'abc'.find('[0-9]+') == ''", "'1 2 3'.findAll('[0-9]') == ['1', '2', '3']", "'1 2 3'.findAll('[0-9]', 2) == ['1', '2']",
    "size('äöü') == 3", "'abc'.size() == 3", "'%s'.format(['a']) == 'a'", "'%d-%d'.format([1, 2]) == '1-2'", "'%.2f'.format([1.5]) == '1.50'",
    "'%x'.format([255]) == 'ff'", "'%X'.format([255]) == 'FF'", "'%b'.format([5]) == '101'", "'%o'.format([8]) == '10'", "'%e'.format([1500.0]) == '1.500000e+03'",
    "'%s'.format([[1, 2]]) == '[1, 2]'", "'%s'.format([{'a': 1}]) == '{\"a\":1}'", "'100%%'.format([]) == '100%'",
    "'%s'.format([1.5]) == '1.5'", "'%s'.format([duration('1s')]) == '1s'", "strings.quote('a\"b') == '\"a\\\\\"b\"'", "'a' < 'b'", "r'\\d' == '\\\\d'",
    # lists
    "[1, 2, 3].isSorted()", "![3, 1].isSorted()", "[1, 2, 3].sum() == 6", "[1.5, 2.0].sum() == 3.5", "[3, 1, 2].min() == 1", "[3, 1, 2].max() == 3", "[].sum() == 0",
    "self.l.filter(x, false).map(x, 1).min() == 1", "[1, 2, 1].indexOf(1) == 0", "[1, 2, 1].lastIndexOf(1) == 2", "[1] + [2] == [1, 2]", "[1, 2, 3].slice(1, 2) == [2]", "[1, 2, 3].slice(2, 9) == [2]",
    "[[1], [2, 3]].flatten() == [1, 2, 3]", "[3, 1, 2].sort() == [1, 2, 3]", "['bb', 'a'].sortBy(x, size(x)) == ['a', 'bb']", "[1, 2, 1].distinct() == [1, 2]", "[1, 2].reverse() == [2, 1]",
    "lists.range(3) == [0, 1, 2]", "[1, 2].first().value() == 1", "[1, 2].last().value() == 2", "sets.contains([1, 2], [2])", "sets.equivalent([1, 2, 1], [2, 1])", "sets.intersects([1], [1, 2])", "!sets.contains([1], [3])",
    "{'a': 1} == {'a': 1}", "{'a': 1}.a == 1", "{1: 'x'}[1] == 'x'", "size([1, 2]) == 2", "size({'a': 1}) == 1",
    # two variables
    "[5, 6].all(i, v, v == i + 5)", "self.m.all(k, v, v > 0)", "[5, 6].exists(i, v, i == 1 && v == 6)", "[5, 6].existsOne(i, v, v == 6)", "[5, 6].transformList(i, v, i + v) == [5, 7]",
    "[5, 6].transformList(i, v, i > 0, i + v) == [7]", "self.m.transformMap(k, v, v + 1) == {'a': 2, 'b': 3}", "self.m.transformMapEntry(k, v, {k + 'x': v}) == {'ax': 1, 'bx': 2}",
    # optionals
    "self.?opt.?x.orValue('d') == 'd'", "self.?s.hasValue()", "self.?s.value() == 'abc'", "self.?opt.value().x == ''", "optional.none().hasValue() == false", "optional.of(1).or(optional.of(2)).value() == 1", "optional.of(1).or(optional.of(1 / 0)).value() == 1", "optional.of(1).orValue(1 / 0) == 1", "optional.none().orValue(1 / 0) == 1",
    "optional.ofNonZeroValue('').hasValue() == false", "self.m[?'z'].orValue(7) == 7", "self.l[?0].value() == 'a'", "self.?i.optMap(x, x + 1).value() == 6", "int(self.s) == 1", "double(self.s) == 1.0", "bool(self.s)", "duration(self.s) == duration('1s')", "timestamp(self.s) == self.t", "self.s.matches(self.s + '(')", "self.s.find(self.s + '(') == ''", "self.?opt.optMap(x, 'y').hasValue() == false",
    "self.?s.optFlatMap(x, optional.of(x)).value() == 'abc'", "[?self.?s, ?self.?long] == ['abc']", "{?'a': self.?s} == {'a': 'abc'}",
    # Kubernetes
    "quantity('1Gi').isGreaterThan(quantity('1G'))", "quantity('500m').compareTo(quantity('0.5')) == 0", "quantity('2').asInteger() == 2", "quantity('2.5').asInteger() == 2", "quantity('50k').add(quantity('20k')) == quantity('70k')",
    "quantity('50k').sub(20000) == quantity('30k')", "isQuantity('1.3Gi') && !isQuantity('abc')", "quantity('abc').isInteger()", "sign(quantity('-1')) == -1", "quantity('1500m').asApproximateFloat() == 1.5", "quantity('1').isInteger() && !quantity('1.5').isInteger()",
    "url('https://u@h:80/p%20q?a=1&a=2#f').getScheme() == 'https'", "url('https://h:80/p').getHost() == 'h:80'", "url('https://h:80/p').getHostname() == 'h'", "url('https://h:80/p').getPort() == '80'",
    "url('https://h/p%20q').getEscapedPath() == '/p%20q'", "url('https://h/?a=1&a=2').getQuery() == {'a': ['1', '2']}", "isURL('https://h') && !isURL('../x')", "url('nope').getHost() == ''",
    "ip('127.0.0.1').isLoopback() && ip('127.0.0.1').family() == 4", "ip('::1').family() == 6", "isIP('1.2.3.4') && !isIP('1.2.3')", "ip('1.2.3').family() == 4", "ip.isCanonical('127.0.0.1')", "!ip.isCanonical('2001:DB8::')", "ip('8.8.8.8').isGlobalUnicast()",
    "ip('0.0.0.0').isUnspecified()", "ip('169.254.1.1').isLinkLocalUnicast()", "ip('224.0.0.1').isLinkLocalMulticast()", "ip('::ffff:1.2.3.4').family() == 4", "string(ip('::1')) == '::1'", "ip('10.0.0.1') == ip('10.0.0.1')",
    "cidr('10.0.0.0/8').containsIP('10.1.2.3')", "cidr('10.0.0.0/8').containsIP(ip('11.0.0.1')) == false", "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", "cidr('10.0.0.0/8').containsCIDR(cidr('10.0.0.0/7')) == false", "cidr('10.1.2.3/8').ip() == ip('10.1.2.3')",
    "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')", "cidr('10.0.0.0/8').prefixLength() == 8", "isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0')", "cidr('x').prefixLength() == 8", "string(cidr('10.1.2.3/8')) == '10.1.2.3/8'",
    "format.dns1123Label().validate('a-b').hasValue() == false", "format.dns1123Label().validate('A').hasValue()", "format.named('dns1123Label').hasValue()", "!format.named('nope').hasValue()", "format.uuid().validate('x').value() == ['does not match the UUID format']",
    "format.dns1123LabelPrefix().validate('a-').hasValue() == false", "format.qualifiedName().validate('a/b').hasValue() == false", "format.labelValue().validate('-').hasValue()", "format.date().validate('2024-01-01').hasValue() == false", "format.byte().validate('YQ==').hasValue() == false",
    "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3", "semver('1.2.3').isLessThan(semver('1.10.0'))", "semver('1.0.0-alpha').isLessThan(semver('1.0.0'))", "semver('1.2.3').compareTo(semver('1.2.3+b')) == 0",
    "isSemver('1.2.3') && !isSemver('1.2')", "semver('v1.2', true).patch() == 0", "isSemver('v1.2', true)", "semver('1.2').major() == 1", "semver('1.0.0-rc.2').isLessThan(semver('1.0.0-rc.11'))", "semver('a.b.c').major() == 1",
    # logic with errors
    "self.l[9] == 'a' || true", "true || self.l[9] == 'a'", "self.l[9] == 'a' && false == true", "self.l.exists(x, self.m[x] == 1)", "self.l.all(x, self.m[x] > 0)", "[1, 2, 0].exists(x, 4 / x == 4)", "[0, 1].all(x, 1 / x > 5)",
    "true ? true : self.l[9] == 'a'", "!(self.l.size() > 9 && self.l[9] == 'a')", "null == null", "self.i == 5 ? self.s == 'abc' : false", "'a' in {'a': 1}",
]  # fmt: skip
SPEC: JsonObject = {
    "i": 5,
    "n": 2,
    "s": "abc",
    "b": True,
    "l": ["a", "b"],
    "objs": [{"k": "x", "v": 1}, {"k": "y", "v": 2}],
    "m": {"a": 1, "b": 2},
    "ios": "50%",
    "t": "2024-01-02T03:04:05Z",
    "d": "1h30m",
    "by": "YWJj",
    "a-b": "dash",
    "namespace": "ns",
    "x.y/z__w": "odd",
    "emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
}
