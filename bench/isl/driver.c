/*
 * isl behind a line protocol, as judge and peer of the integer-set library: one request a line on
 * stdin, tab-separated, one answer a line on stdout.
 *
 *   OP ARG...             ->  "ok" RESULT | "unknown" | "unbounded" | "error" MESSAGE
 *   time N OP ARG...      ->  "ok" NANOSECONDS   (mean of N runs on operands parsed anew for each,
 *                                                 without parsing and printing)
 *
 * Sets and maps are in isl's notation (read as unions); truths are "yes" and "no"; numbers decimal.
 * "unknown" means that isl used up its own budget of operations, "unbounded" that an optimum is. Built with: cc -O2 driver.c -lisl
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <isl/aff.h>
#include <isl/ctx.h>
#include <isl/ilp.h>
#include <isl/map.h>
#include <isl/options.h>
#include <isl/printer.h>
#include <isl/set.h>
#include <isl/union_map.h>
#include <isl/union_set.h>
#include <isl/val.h>
#include <isl/version.h>

/* Operations isl may spend on one request (some seconds). */
#define MOST_OPERATIONS 20000000ul
#define MOST_ARGS 8

typedef isl_union_set set;
typedef isl_union_map map;

/* A value: 's' set, 'm' map, 'b' truth, 'v' number, 'i' plain integer, 'e' failed. */
typedef struct {
  char kind;
  set *s;
  map *m;
  isl_val *v;
  long i;
} value;

static value of_set(set *s) { return (value){.kind = s ? 's' : 'e', .s = s}; }
static value of_map(map *m) { return (value){.kind = m ? 'm' : 'e', .m = m}; }
static value of_val(isl_val *v) { return (value){.kind = v ? 'v' : 'e', .v = v}; }
static value of_bool(isl_bool b) { return (value){.kind = b < 0 ? 'e' : 'b', .i = b == isl_bool_true}; }

static value release(value v) {
  if (v.s) isl_union_set_free(v.s);
  if (v.m) isl_union_map_free(v.m);
  if (v.v) isl_val_free(v.v);
  return (value){.kind = 'e'};
}

/* Removes dimensions of every tuple, which keeps its name. */
static value project_out(set *s, long first, long count) {
  set *out = isl_union_set_empty(isl_union_set_get_space(s));
  isl_set_list *list = isl_union_set_get_set_list(s);
  for (int i = 0; i < isl_set_list_n_set(list); i++) {
    isl_set *one = isl_set_list_get_set(list, i);
    isl_id *id = isl_set_has_tuple_id(one) ? isl_set_get_tuple_id(one) : NULL;
    one = isl_set_project_out(one, isl_dim_set, first, count);
    if (id) one = isl_set_set_tuple_id(one, id);
    out = isl_union_set_union(out, isl_union_set_from_set(one));
  }
  isl_set_list_free(list);
  isl_union_set_free(s);
  return of_set(out);
}

static value count_points(set *s) {
  isl_ctx *ctx = isl_union_set_get_ctx(s);
  isl_val *total = isl_val_zero(ctx);
  isl_set_list *list = isl_union_set_get_set_list(s);
  for (int i = 0; i < isl_set_list_n_set(list); i++) {
    isl_set *one = isl_set_list_get_set(list, i);
    total = isl_val_add(total, isl_set_count_val(one));
    isl_set_free(one);
  }
  isl_set_list_free(list);
  isl_union_set_free(s);
  return of_val(total);
}

/* Applies a hull to the set of each tuple. */
static value hull_of(set *s, isl_basic_set *(*hull)(isl_set *)) {
  set *out = isl_union_set_empty(isl_union_set_get_space(s));
  isl_set_list *list = isl_union_set_get_set_list(s);
  for (int i = 0; i < isl_set_list_n_set(list); i++) {
    isl_basic_set *one = hull(isl_set_list_get_set(list, i));
    out = isl_union_set_union(out, isl_union_set_from_basic_set(one));
  }
  isl_set_list_free(list);
  isl_union_set_free(s);
  return of_set(out);
}

static isl_basic_set *affine_hull_without_divisions(isl_set *s) {
  return isl_basic_set_remove_divs(isl_set_affine_hull(s));
}

/* One end of one dimension of a set in one tuple without parameters; an
   empty set has none (NaN). */
static value dim_bound(set *s, long dim, int most) {
  if (isl_union_set_is_empty(s) == isl_bool_true) {
    isl_val *none = isl_val_nan(isl_union_set_get_ctx(s));
    isl_union_set_free(s);
    return of_val(none);
  }
  isl_set *one = isl_set_from_union_set(s);
  isl_val *v = most ? isl_set_dim_max_val(one, dim) : isl_set_dim_min_val(one, dim);
  return of_val(v);
}

/* Requests: a name, the kinds of the operands, and what to do. Operands are consumed. */
typedef value (*operation)(value *a);

#define OP(name) static value op_##name(value *a)
OP(s_intersect) { return of_set(isl_union_set_intersect(a[0].s, a[1].s)); }
OP(s_union) { return of_set(isl_union_set_union(a[0].s, a[1].s)); }
OP(s_subtract) { return of_set(isl_union_set_subtract(a[0].s, a[1].s)); }
OP(m_intersect) { return of_map(isl_union_map_intersect(a[0].m, a[1].m)); }
OP(m_union) { return of_map(isl_union_map_union(a[0].m, a[1].m)); }
OP(m_subtract) { return of_map(isl_union_map_subtract(a[0].m, a[1].m)); }

static value truth_of_sets(value *a, isl_bool (*test)(set *, set *)) {
  value v = of_bool(test(a[0].s, a[1].s));
  release(a[0]), release(a[1]);
  return v;
}
static value truth_of_maps(value *a, isl_bool (*test)(map *, map *)) {
  value v = of_bool(test(a[0].m, a[1].m));
  release(a[0]), release(a[1]);
  return v;
}
OP(s_subset) { return truth_of_sets(a, isl_union_set_is_subset); }
OP(s_equal) { return truth_of_sets(a, isl_union_set_is_equal); }
OP(s_disjoint) { return truth_of_sets(a, isl_union_set_is_disjoint); }
OP(m_subset) { return truth_of_maps(a, isl_union_map_is_subset); }
OP(m_equal) { return truth_of_maps(a, isl_union_map_is_equal); }
OP(m_disjoint) { return truth_of_maps(a, isl_union_map_is_disjoint); }
OP(s_empty) { value v = of_bool(isl_union_set_is_empty(a[0].s)); release(a[0]); return v; }
OP(m_empty) { value v = of_bool(isl_union_map_is_empty(a[0].m)); release(a[0]); return v; }
OP(m_single_valued) {
  value v = of_bool(isl_union_map_is_single_valued(a[0].m));
  release(a[0]);
  return v;
}
OP(s_lexmin) { return of_set(isl_union_set_lexmin(a[0].s)); }
OP(s_lexmax) { return of_set(isl_union_set_lexmax(a[0].s)); }
OP(m_lexmin) { return of_map(isl_union_map_lexmin(a[0].m)); }
OP(m_lexmax) { return of_map(isl_union_map_lexmax(a[0].m)); }
OP(s_project_out) { return project_out(a[0].s, a[1].i, a[2].i); }
OP(s_project_params) { return of_set(isl_union_set_project_out_all_params(a[0].s)); }
OP(m_project_params) { return of_map(isl_union_map_project_out_all_params(a[0].m)); }
OP(s_params) {
  isl_set *p = isl_union_set_params(a[0].s);
  return of_set(isl_union_set_from_set(isl_set_from_params(p)));
}
OP(s_intersect_params) {
  isl_set *p = isl_union_set_params(a[1].s);
  return of_set(isl_union_set_intersect_params(a[0].s, p));
}
OP(s_at) {
  isl_set *p = isl_union_set_params(a[1].s);
  return of_set(isl_union_set_project_out_all_params(isl_union_set_intersect_params(a[0].s, p)));
}
OP(s_sample) {
  set *out = isl_union_set_empty(isl_union_set_get_space(a[0].s));
  isl_set_list *list = isl_union_set_get_set_list(a[0].s);
  for (int i = 0; i < isl_set_list_n_set(list) && isl_union_set_is_empty(out); i++) {
    isl_basic_set *one = isl_set_sample(isl_set_list_get_set(list, i));
    out = isl_union_set_union(out, isl_union_set_from_basic_set(one));
  }
  isl_set_list_free(list);
  release(a[0]);
  return of_set(out);
}
OP(s_coalesce) { return of_set(isl_union_set_coalesce(a[0].s)); }
OP(m_coalesce) { return of_map(isl_union_map_coalesce(a[0].m)); }
OP(s_remove_redundancies) {
  set *out = isl_union_set_empty(isl_union_set_get_space(a[0].s));
  isl_set_list *list = isl_union_set_get_set_list(a[0].s);
  for (int i = 0; i < isl_set_list_n_set(list); i++) {
    isl_set *one = isl_set_remove_redundancies(isl_set_list_get_set(list, i));
    out = isl_union_set_union(out, isl_union_set_from_set(one));
  }
  isl_set_list_free(list);
  release(a[0]);
  return of_set(out);
}
OP(s_disjoint_pieces) {
  set *out = isl_union_set_empty(isl_union_set_get_space(a[0].s));
  isl_set_list *list = isl_union_set_get_set_list(a[0].s);
  for (int i = 0; i < isl_set_list_n_set(list); i++) {
    isl_set *one = isl_set_make_disjoint(isl_set_list_get_set(list, i));
    out = isl_union_set_union(out, isl_union_set_from_set(one));
  }
  isl_set_list_free(list);
  release(a[0]);
  return of_set(out);
}
OP(s_count) { return count_points(a[0].s); }
OP(s_count_at) {
  isl_set *p = isl_union_set_params(a[1].s);
  return count_points(isl_union_set_project_out_all_params(isl_union_set_intersect_params(a[0].s, p)));
}
OP(s_affine_hull) { return hull_of(a[0].s, affine_hull_without_divisions); }
OP(s_simple_hull) { return hull_of(a[0].s, isl_set_simple_hull); }
OP(s_convex_hull) { return hull_of(a[0].s, isl_set_convex_hull); }
OP(s_dim_min) { return dim_bound(a[0].s, a[1].i, 0); }
OP(s_dim_max) { return dim_bound(a[0].s, a[1].i, 1); }
OP(s_identity) { return of_map(isl_union_set_identity(a[0].s)); }
OP(s_pairs) { return of_map(isl_union_map_from_domain_and_range(a[0].s, a[1].s)); }
OP(s_lex_less) { return of_map(isl_union_set_lex_lt_union_set(a[0].s, a[1].s)); }
OP(s_read) { return of_set(a[0].s); }
OP(m_read) { return of_map(a[0].m); }
OP(m_intersect_domain) { return of_map(isl_union_map_intersect_domain(a[0].m, a[1].s)); }
OP(m_intersect_range) { return of_map(isl_union_map_intersect_range(a[0].m, a[1].s)); }
OP(m_inverse) { return of_map(isl_union_map_reverse(a[0].m)); }
OP(m_compose) { return of_map(isl_union_map_apply_range(a[0].m, a[1].m)); }
OP(m_flat_range_product) { return of_map(isl_union_map_flat_range_product(a[0].m, a[1].m)); }
OP(m_domain_map) { return of_map(isl_union_map_domain_map(a[0].m)); }
OP(m_range_map) { return of_map(isl_union_map_range_map(a[0].m)); }
OP(m_wrap) { return of_set(isl_union_map_wrap(a[0].m)); }
OP(m_apply) { return of_set(isl_union_set_apply(a[1].s, a[0].m)); }
OP(m_domain) { return of_set(isl_union_map_domain(a[0].m)); }
OP(m_range) { return of_set(isl_union_map_range(a[0].m)); }
OP(m_deltas) { return of_set(isl_union_map_deltas(a[0].m)); }

static const struct {
  const char *name, *kinds;
  operation run;
} operations[] = {
#define ROW(name, kinds) {#name, kinds, op_##name},
    ROW(s_intersect, "ss") ROW(s_union, "ss") ROW(s_subtract, "ss") ROW(s_subset, "ss")
    ROW(s_equal, "ss") ROW(s_disjoint, "ss") ROW(s_empty, "s") ROW(s_lexmin, "s")
    ROW(s_lexmax, "s") ROW(s_project_out, "sii") ROW(s_project_params, "s") ROW(s_params, "s")
    ROW(s_intersect_params, "ss") ROW(s_coalesce, "s") ROW(s_disjoint_pieces, "s") ROW(s_remove_redundancies, "s")
    ROW(s_count, "s") ROW(s_count_at, "ss") ROW(s_affine_hull, "s") ROW(s_simple_hull, "s") ROW(s_convex_hull, "s")
    ROW(s_dim_min, "si") ROW(s_dim_max, "si") ROW(s_identity, "s") ROW(s_pairs, "ss")
    ROW(s_lex_less, "ss") ROW(s_read, "s") ROW(s_at, "ss") ROW(s_sample, "s")
    ROW(m_intersect, "mm") ROW(m_union, "mm") ROW(m_subtract, "mm") ROW(m_subset, "mm")
    ROW(m_equal, "mm") ROW(m_disjoint, "mm") ROW(m_empty, "m") ROW(m_single_valued, "m")
    ROW(m_lexmin, "m") ROW(m_lexmax, "m") ROW(m_project_params, "m") ROW(m_coalesce, "m")
    ROW(m_intersect_domain, "ms") ROW(m_intersect_range, "ms") ROW(m_inverse, "m")
    ROW(m_compose, "mm") ROW(m_apply, "ms") ROW(m_domain, "m") ROW(m_range, "m")
    ROW(m_flat_range_product, "mm") ROW(m_domain_map, "m") ROW(m_range_map, "m") ROW(m_wrap, "m")
    ROW(m_deltas, "m") ROW(m_read, "m")
};

static value parse(isl_ctx *ctx, char kind, const char *text) {
  if (kind == 's') return of_set(isl_union_set_read_from_str(ctx, text));
  if (kind == 'm') return of_map(isl_union_map_read_from_str(ctx, text));
  return (value){.kind = 'i', .i = strtol(text, NULL, 10)};
}

static void print_failure(isl_ctx *ctx) {
  const char *message = isl_ctx_last_error_msg(ctx);
  if (isl_ctx_last_error(ctx) == isl_error_quota) printf("unknown\n");
  else if (message && strcmp(message, "unbounded optimum") == 0) printf("unbounded\n");
  else printf("error\t%s\n", message ? message : "no result");
}

static void print_value(isl_ctx *ctx, value v) {
  char *text = NULL;
  if (v.kind == 's') text = isl_union_set_to_str(v.s);
  else if (v.kind == 'm') text = isl_union_map_to_str(v.m);
  else if (v.kind == 'v') text = isl_val_to_str(v.v);
  if (v.kind == 'b') printf("ok\t%s\n", v.i ? "yes" : "no");
  else if (text) printf("ok\t%s\n", text);
  else print_failure(ctx);
  free(text);
}

static int find_operation(const char *name) {
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
    if (strcmp(operations[i].name, name) == 0) return (int)i;
  return -1;
}

/* Parses the operands; 0 when one is malformed or missing (all are then released). */
static int read_operands(isl_ctx *ctx, int op, char **args, int n, value *out) {
  const char *kinds = operations[op].kinds;
  int wanted = (int)strlen(kinds);
  if (n != wanted) return 0;
  for (int i = 0; i < wanted; i++) {
    out[i] = parse(ctx, kinds[i], args[i]);
    if (out[i].kind == 'e') {
      while (i-- > 0) release(out[i]);
      return 0;
    }
  }
  return 1;
}

static void answer_once(isl_ctx *ctx, int op, char **args, int n) {
  value operands[MOST_ARGS];
  if (!read_operands(ctx, op, args, n, operands)) {
    printf("error\tmalformed operand\n");
    return;
  }
  value result = operations[op].run(operands);
  print_value(ctx, result);
  release(result);
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void answer_timed(isl_ctx *ctx, int op, char **args, int n, long repeats) {
  value(*operands)[MOST_ARGS] = calloc((size_t)repeats, sizeof *operands);
  value *results = calloc((size_t)repeats, sizeof *results);
  for (long r = 0; r < repeats; r++) {
    if (!read_operands(ctx, op, args, n, operands[r])) {
      printf("error\tmalformed operand\n");
      return;
    }
  }
  double start = now_ns();
  for (long r = 0; r < repeats; r++) {
    isl_ctx_reset_operations(ctx);
    results[r] = operations[op].run(operands[r]);
  }
  double spent = now_ns() - start;
  int failed = 0;
  for (long r = 0; r < repeats; r++) {
    failed |= results[r].kind == 'e';
    release(results[r]);
  }
  if (failed) print_failure(ctx);
  else printf("ok\t%.1f\n", spent / (double)repeats);
  free(operands);
  free(results);
}

int main(void) {
  isl_ctx *ctx = isl_ctx_alloc();
  isl_options_set_on_error(ctx, ISL_ON_ERROR_CONTINUE);
  isl_ctx_set_max_operations(ctx, MOST_OPERATIONS);
  char *line = NULL;
  size_t room = 0;
  ssize_t length;
  while ((length = getline(&line, &room, stdin)) > 0) {
    if (line[length - 1] == '\n') line[length - 1] = '\0';
    isl_ctx_reset_error(ctx);
    isl_ctx_reset_operations(ctx);
    char *args[MOST_ARGS + 3];
    int n = 0;
    for (char *rest = line, *part; n < MOST_ARGS + 3 && (part = strsep(&rest, "\t"));) args[n++] = part;
    int timed = n > 2 && strcmp(args[0], "time") == 0;
    int first = timed ? 2 : 0;
    int op = find_operation(args[first]);
    if (strcmp(args[0], "version") == 0) printf("ok\t%s", isl_version());
    else if (op < 0) printf("error\tno operation %s\n", args[first]);
    else if (timed) answer_timed(ctx, op, args + 3, n - 3, strtol(args[1], NULL, 10));
    else answer_once(ctx, op, args + 1, n - 1);
    fflush(stdout);
  }
  free(line);
  isl_ctx_free(ctx);
  return 0;
}
