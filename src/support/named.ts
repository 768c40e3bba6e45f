/**
 * Records whose keys are names that somebody else chose: a model may call a value `__proto__` or `constructor`.
 * What every object inherits is no entry, and an assignment makes one whatever the name is.
 */

/** For `record[name] = value` with any name; a record that is handed out is one of `Object.fromEntries`. */
export function emptyNamed<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>;
}

/** The record's own entry. */
export function named<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
