/**
 * A matrix as a product of two thin ones, by Gram-Schmidt with column pivoting (Golub and Van Loan, 5.4):
 * the longest column that is left gives the next direction, until none is longer than a share of the
 * longest of the whole. It ends where the rank would no longer save work.
 */

/** Row-major. */
export interface Matrix {
  readonly rows: number;
  readonly columns: number;
  readonly data: Float64Array;
}

export interface Factors {
  readonly left: Matrix;
  readonly right: Matrix;
}

/** Factors whose product misses no column by more than `share` of the longest, if they save work. */
export function factorThin({ rows, columns, data }: Matrix, share: number): Factors | undefined {
  const most = Math.ceil((rows * columns) / (rows + columns)) - 1;
  // By columns: each is a run.
  const rest = new Float64Array(data.length);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) rest[j * rows + i] = data[i * columns + j]!;
  }
  const directions: Float64Array[] = [];
  const weights: Float64Array[] = [];
  const enough = longestColumn(rest, rows).length * share;
  for (;;) {
    const { pivot, length } = longestColumn(rest, rows);
    if (length <= enough) break;
    if (directions.length === most) return undefined;
    const direction = rest.slice(pivot * rows, (pivot + 1) * rows).map((x) => x / length);
    directions.push(direction);
    weights.push(takeOut(rest, direction));
  }
  return directions.length === 0 ? undefined : assemble(directions, weights);
}

function longestColumn(rest: Float64Array, rows: number) {
  let [pivot, most] = [0, 0];
  for (let j = 0; j * rows < rest.length; j++) {
    let square = 0;
    for (let i = j * rows; i < (j + 1) * rows; i++) square += rest[i]! * rest[i]!;
    if (square > most) [pivot, most] = [j, square];
  }
  return { pivot, length: Math.sqrt(most) };
}

/** Takes the direction out of every column; gives how much of it each had. */
function takeOut(rest: Float64Array, direction: Float64Array): Float64Array {
  const rows = direction.length;
  const weights = new Float64Array(rest.length / rows);
  for (let j = 0; j < weights.length; j++) {
    let sum = 0;
    for (let i = 0; i < rows; i++) sum += direction[i]! * rest[j * rows + i]!;
    for (let i = 0; i < rows; i++) rest[j * rows + i] = rest[j * rows + i]! - sum * direction[i]!;
    weights[j] = sum;
  }
  return weights;
}

function assemble(directions: readonly Float64Array[], weights: readonly Float64Array[]): Factors {
  const rank = directions.length;
  const [rows, columns] = [directions[0]!.length, weights[0]!.length];
  const left = new Float64Array(rows * rank);
  const right = new Float64Array(rank * columns);
  for (let r = 0; r < rank; r++) {
    for (let i = 0; i < rows; i++) left[i * rank + r] = directions[r]![i]!;
    right.set(weights[r]!, r * columns);
  }
  return {
    left: { rows, columns: rank, data: left },
    right: { rows: rank, columns, data: right },
  };
}
