/** Matches of one rule: rows of integers of one width, in one growing array. */

export class RowBuffer {
  cells = new Int32Array(1 << 10);
  count = 0;

  /** Doubles the room; gives the new array. */
  grow(): Int32Array<ArrayBuffer> {
    const larger = new Int32Array(this.cells.length * 2);
    larger.set(this.cells);
    this.cells = larger;
    return larger;
  }
}
