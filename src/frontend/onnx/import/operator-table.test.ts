/** docs/operators.md lists every operator that has a row, and no other. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { operatorTables } from "./operator-table.ts";

test("the page of operators is complete", () => {
  const page = readFileSync(new URL("../../../../docs/operators.md", import.meta.url), "utf8");
  const lists = page.split("\n").filter((line) => line.startsWith("`"));
  const listed = lists.flatMap((line) => line.split(" ").map((word) => word.replaceAll("`", "")));
  const known = Object.values(operatorTables).flatMap((table) => Object.keys(table));
  expect(listed.sort()).toEqual(known.sort());
});
