/**
 * Systems on which integer solvers stumble: a large rational shadow without integer points (the
 * "Omega nightmare" and other thin slabs), many splinters, strides that exclude each other, large
 * coefficients, knapsacks just below and above a Frobenius number, linearised addresses. Every one is
 * put to both libraries.
 */

export interface HardCase {
  /** The question's name. */
  readonly name: string;
  readonly operands: readonly string[];
}

const empty = (text: string): HardCase => ({ name: "s_empty", operands: [text] });

export const hardCases: readonly HardCase[] = [
  // W. Pugh's "Omega test nightmare": no integer point, but a real one, and no dark shadow.
  empty("{ [x, y] : 27 <= 11x + 13y <= 45 and -10 <= 7x - 9y <= 4 }"),
  // The same slab moved until it holds a point.
  empty("{ [x, y] : 27 <= 11x + 13y <= 46 and -10 <= 7x - 9y <= 4 }"),
  { name: "s_lexmin", operands: ["{ [x, y] : 27 <= 11x + 13y <= 60 and -10 <= 7x - 9y <= 9 }"] },
  { name: "s_count", operands: ["{ [x, y] : 27 <= 11x + 13y <= 450 and -100 <= 7x - 9y <= 40 }"] },
  {
    name: "s_project_out",
    operands: ["[N] -> { [x, y] : N <= 11x + 13y <= N + 18 and -10 <= 7x - 9y <= 4 }", "0", "2"],
  },
  {
    name: "s_project_out",
    operands: ["{ [a, x] : 0 <= 3a - 2x <= 1 and 7 <= 5x + a <= 40 }", "1", "1"],
  },
  {
    name: "s_project_out",
    operands: ["{ [i, j, k] : 5i <= 7k <= 5i + 3 and 3j <= 4k <= 3j + 1 }", "2", "1"],
  },
  // Pugh and Wonnacott: unions of strides after projection.
  {
    name: "s_project_out",
    operands: ["[n] -> { [i, j] : 1 <= i <= 40 and 2j <= 3i <= 2j + 1 and n = 6j + 9i }", "0", "1"],
  },
  {
    name: "s_equal",
    operands: [
      "{ [i] : exists (a, b: i = 6a + 10b and 0 <= i <= 60) }",
      "{ [i] : i mod 2 = 0 and 0 <= i <= 60 }",
    ],
  },
  {
    name: "s_subtract",
    operands: [
      "{ [i] : 0 <= i <= 100 }",
      "{ [i] : exists (a, b: i = 6a + 11b and a >= 0 and b >= 0) }",
    ],
  },
  // Frobenius: 49 is the greatest number that is no sum of 11s and 6s.
  empty("{ [a, b] : 11a + 6b = 49 and a >= 0 and b >= 0 }"),
  empty("{ [a, b] : 11a + 6b = 50 and a >= 0 and b >= 0 }"),
  empty("{ [a, b, c] : 12223a + 12224b + 36674c = 89643481 and a >= 0 and b >= 0 and c >= 0 }"),
  empty("{ [a, b, c] : 6a + 10b + 15c = 29 and a >= 0 and b >= 0 and c >= 0 }"),
  // Thin needles: consecutive Fibonacci numbers as coefficients.
  empty("{ [x, y] : 1 <= 987x - 610y <= 2 and 1 <= 377x - 233y <= 1 and 0 <= x <= 5000 }"),
  empty("{ [x, y] : 100001x - 100000y = 99999 and 0 <= x <= 99998 and y >= 0 }"),
  {
    name: "s_lexmin",
    operands: ["[N] -> { [x, y] : 7x + 5y >= N and 3x - 2y <= 4 and x >= 0 and 0 <= N <= 100 }"],
  },
  {
    name: "s_lexmax",
    operands: ["[N, M] -> { [x, y] : 2x + 3y <= N and 5x - y <= M and x >= 0 and y >= 0 }"],
  },
  // Congruences: coprime ones meet (Chinese remainders), others contradict.
  empty("{ [x] : x mod 7 = 3 and x mod 11 = 5 and x mod 13 = 9 and 0 <= x <= 1000 }"),
  empty("{ [x] : x mod 6 = 1 and x mod 10 = 4 }"),
  empty("{ [x, y] : 2x + 4y = 7 }"),
  empty("{ [i, j] : 4i + 1 <= 12j <= 4i + 3 }"),
  // Linearised addresses of a tile with row stride 1024, and of one that overlaps by one element.
  empty(
    "{ [i, j, k, l] : 0 <= i, k < 512 and 0 <= j, l < 1024 and i < k and 1024i + j = 1024k + l }",
  ),
  empty(
    "{ [i, j, k, l] : 0 <= i, k < 512 and 0 <= j, l < 1025 and i < k and 1024i + j = 1024k + l }",
  ),
  // Many variables, few points.
  empty(
    "{ [a, b, c, d, e] : 0 <= a, b, c, d, e <= 3 and 7a + 11b - 13c = 1 and 5b + 3d - 9e = 2 and a + b + c + d + e = 9 }",
  ),
  { name: "s_count", operands: ["{ [a, b, c, d] : 0 <= a, b, c, d <= 12 and 3a + 5b = 7c + 2d }"] },
  // A square covered by its four quarters, and by three.
  {
    name: "s_subset",
    operands: [
      "{ [i, j] : 0 <= i, j < 100 }",
      "{ [i, j] : 0 <= i, j < 50; [i, j] : 50 <= i < 100 and 0 <= j < 50; [i, j] : 0 <= i < 50 <= j < 100; [i, j] : 50 <= i, j < 100 }",
    ],
  },
  {
    name: "s_subset",
    operands: [
      "{ [i, j] : 0 <= i, j < 100 }",
      "{ [i, j] : 0 <= i, j < 50; [i, j] : 50 <= i < 100 and 0 <= j < 50; [i, j] : 0 <= i < 50 <= j < 100 }",
    ],
  },
];
