/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX text to tokens, one ahead, and the one way to report an error.  Called by
 * the parser only; no locks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/softcuda/ptx_parser.h"

/*
 * Message, then the source line with a mark behind the place, so that a log
 * shows both on one line.
 */
void ptx_fail(struct ptx_parser *p, const struct ptx_token *at,
	enum ptx_status status, const char *fmt, ...)
{
	const char *s, *e;
	va_list ap;
	size_t n;
	int len;

	p->status = status;
	if (!p->err)
		longjmp(p->fail, 1);
	p->err->line = at->line;
	p->err->column = at->column;
	va_start(ap, fmt);
	len = vsnprintf(p->err->message, sizeof(p->err->message), fmt, ap);
	va_end(ap);
	n = len < 0 ? 0 : (size_t)len;
	s = at->text ? at->text : p->pos;
	s = s > p->end ? p->end : s;
	e = s;
	while (s > p->text && s[-1] != '\n')
		s--;
	while (e < p->end && *e != '\n' && *e != '\r')
		e++;
	while (s < e && (*s == ' ' || *s == '\t'))
		s++;
	if (n + 8 < sizeof(p->err->message) && e > s)
		snprintf(p->err->message + n, sizeof(p->err->message) - n,
			": `%.*s'", (int)(e - s > 160 ? 160 : e - s), s);
	longjmp(p->fail, 1);
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		(c >= '0' && c <= '9') || c == '_' || c == '$';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char peek(const struct ptx_parser *p, size_t n)
{
	return (size_t)(p->end - p->pos) > n ? p->pos[n] : '\0';
}

static void newline(struct ptx_parser *p)
{
	p->line++;
	p->line_start = p->pos;
}

static void skip_blank(struct ptx_parser *p)
{
	struct ptx_token at;

	while (p->pos < p->end) {
		char c = *p->pos;

		if (c == '\n') {
			p->pos++;
			newline(p);
		} else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' ||
			   c == '\v') {
			p->pos++;
		} else if (c == '/' && peek(p, 1) == '/') {
			while (p->pos < p->end && *p->pos != '\n')
				p->pos++;
		} else if (c == '/' && peek(p, 1) == '*') {
			at = (struct ptx_token){ .line = p->line,
				.column = (u32)(p->pos - p->line_start) + 1,
				.text = p->pos };
			p->pos += 2;
			while (peek(p, 0) != '*' || peek(p, 1) != '/') {
				if (p->pos >= p->end)
					ptx_fail(p, &at, PTX_SYNTAX,
						"comment without end");
				if (*p->pos++ == '\n')
					newline(p);
			}
			p->pos += 2;
		} else {
			return;
		}
	}
}

static int digit(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

/* 0f and 0d: exactly so many hexadecimal digits. */
static void lex_bits(struct ptx_parser *p, u32 digits)
{
	u32 n;

	p->tok.value = 0;
	p->pos += 2;
	for (n = 0; n < digits && digit(peek(p, 0)) < 16; n++)
		p->tok.value = p->tok.value << 4 | (u32)digit(*p->pos++);
	if (n != digits || is_word(peek(p, 0)))
		ptx_fail(p, &p->tok, PTX_SYNTAX, "a float has %u hex digits",
			digits);
}

static bool is_decimal_float(const struct ptx_parser *p)
{
	size_t n = 0;

	while (is_digit(peek(p, n)))
		n++;
	return (peek(p, n) == '.' && is_digit(peek(p, n + 1))) ||
		((peek(p, n) == 'e' || peek(p, n) == 'E') &&
		 (is_digit(peek(p, n + 1)) || ((peek(p, n + 1) == '-' ||
			peek(p, n + 1) == '+') && is_digit(peek(p, n + 2)))));
}

static void lex_decimal(struct ptx_parser *p)
{
	char copy[64];
	size_t n = 0;
	double d;

	while (n + 1 < sizeof(copy) && (is_digit(peek(p, n)) ||
		(peek(p, n) && strchr(".eE", peek(p, n))) ||
		((peek(p, n) == '-' || peek(p, n) == '+') && n &&
		 (copy[n - 1] == 'e' || copy[n - 1] == 'E')))) {
		copy[n] = peek(p, n);
		n++;
	}
	copy[n] = '\0';
	d = strtod(copy, NULL);
	memcpy(&p->tok.value, &d, sizeof(d));
	p->tok.kind = PTX_TOK_F64;
	p->pos += n;
}

static void lex_number(struct ptx_parser *p)
{
	char x = peek(p, 1);
	int base = 10;
	u64 v = 0;

	if (*p->pos == '0' && (x == 'f' || x == 'F')) {
		p->tok.kind = PTX_TOK_F32;
		lex_bits(p, 8);
		return;
	}
	if (*p->pos == '0' && (x == 'd' || x == 'D')) {
		p->tok.kind = PTX_TOK_F64;
		lex_bits(p, 16);
		return;
	}
	if (is_decimal_float(p)) {
		lex_decimal(p);
		return;
	}
	if (*p->pos == '0' && (x == 'x' || x == 'X')) {
		base = 16;
		p->pos += 2;
	} else if (*p->pos == '0' && (x == 'b' || x == 'B')) {
		base = 2;
		p->pos += 2;
	} else if (*p->pos == '0') {
		base = 8;
	}
	while (digit(peek(p, 0)) < base) {
		if (v > (~0ull - (u64)digit(*p->pos)) / (u64)base)
			ptx_fail(p, &p->tok, PTX_SYNTAX,
				"number does not fit 64 bits");
		v = v * (u64)base + (u64)digit(*p->pos++);
	}
	p->tok.is_unsigned = peek(p, 0) == 'U';
	if (p->tok.is_unsigned)
		p->pos++;
	if (is_word(peek(p, 0)))
		ptx_fail(p, &p->tok, PTX_SYNTAX, "bad number");
	p->tok.kind = PTX_TOK_INT;
	p->tok.value = v;
}

static void lex_string(struct ptx_parser *p)
{
	p->tok.kind = PTX_TOK_STRING;
	p->tok.text = ++p->pos;
	while (p->pos < p->end && *p->pos != '"') {
		if (*p->pos == '\n')
			ptx_fail(p, &p->tok, PTX_SYNTAX, "string without end");
		p->pos += *p->pos == '\\' && p->pos + 1 < p->end ? 2 : 1;
	}
	if (p->pos >= p->end)
		ptx_fail(p, &p->tok, PTX_SYNTAX, "string without end");
	p->tok.len = (u32)(p->pos - p->tok.text);
	p->pos++;
}

void ptx_next(struct ptx_parser *p)
{
	struct ptx_token *t = &p->tok;
	char c;

	skip_blank(p);
	*t = (struct ptx_token){ .line = p->line,
		.column = (u32)(p->pos - p->line_start) + 1, .text = p->pos };
	if (p->pos >= p->end) {
		t->kind = PTX_TOK_END;
		return;
	}
	c = *p->pos;
	if (is_digit(c)) {
		lex_number(p);
	} else if (c == '"') {
		lex_string(p);
		return;
	} else if (is_word(c) || (c == '%' && is_word(peek(p, 1)))) {
		t->kind = PTX_TOK_WORD;
		p->pos++;
		while (is_word(peek(p, 0)))
			p->pos++;
	} else if (c == '.' && is_word(peek(p, 1))) {
		t->kind = PTX_TOK_DOT;
		t->text = ++p->pos;
		while (is_word(peek(p, 0)) ||
		       (peek(p, 0) == ':' && peek(p, 1) == ':'))
			p->pos += peek(p, 0) == ':' ? 2 : 1;
	} else {
		t->kind = PTX_TOK_PUNCT;
		t->punct = c;
		p->pos++;
	}
	t->len = (u32)(p->pos - t->text);
}

void ptx_lex_start(struct ptx_parser *p, const char *text, size_t len)
{
	while (len && !text[len - 1])
		len--;
	p->text = p->pos = p->line_start = text;
	p->end = text + len;
	p->line = 1;
	ptx_next(p);
}

bool ptx_tok_is(const struct ptx_token *t, const char *word)
{
	return t->len == strlen(word) && !memcmp(t->text, word, t->len);
}

bool ptx_is_punct(const struct ptx_parser *p, char c)
{
	return p->tok.kind == PTX_TOK_PUNCT && p->tok.punct == c;
}

bool ptx_is_dot(const struct ptx_parser *p, const char *word)
{
	return p->tok.kind == PTX_TOK_DOT && ptx_tok_is(&p->tok, word);
}

bool ptx_accept(struct ptx_parser *p, char c)
{
	if (!ptx_is_punct(p, c))
		return false;
	ptx_next(p);
	return true;
}

void ptx_expect(struct ptx_parser *p, char c)
{
	if (!ptx_accept(p, c))
		ptx_fail(p, &p->tok, PTX_SYNTAX, "`%c' expected", c);
}

/* .loc and .file end with their line. */
void ptx_skip_line(struct ptx_parser *p)
{
	u32 line = p->tok.line;

	while (p->tok.kind != PTX_TOK_END && p->tok.line == line)
		ptx_next(p);
}
