/**
 * The door of affine/: exact integer sets and maps, dependences and the legality of schedules. Knows
 * no tensors. docs/affine.md explains the ideas; answers that could not be proved are "unknown",
 * which callers treat as a refusal.
 */

export { DiagnosticError } from "../support/diagnostic.ts";
export {
  type BandProperties,
  type BandRange,
  bandProperties,
  type Direction,
  type Distance,
  directionOf,
  distanceVector,
} from "./band.ts";
export {
  type Box,
  type DimensionBounds,
  footprintBoxes,
  formatBounds,
  hullBoxes,
} from "./bounds.ts";
export { BoxImage } from "./box-image.ts";
export {
  atMost,
  type BoxParts,
  below,
  type Constraint,
  equals,
  type MapParts,
  makeBox,
  makeContext,
  makeMap,
  makeRelation,
  makeSet,
  type RelationParts,
  type SetParts,
  within,
} from "./build.ts";
export { coalesce } from "./coalesce.ts";
export {
  contains,
  isDisjoint,
  isEmpty,
  isEqual,
  isSubset,
  makeDisjoint,
  samplePair,
  samplePoint,
  subtract,
} from "./compare.ts";
export { countInParams, countPoints } from "./count.ts";
export {
  type Access,
  type AccessKind,
  type Dependence,
  type DependenceKind,
  findDependences,
  makeDependence,
  restrictDependence,
  type Statement,
} from "./dependence.ts";
export { enumeratePoints, type TuplePoint } from "./enumerate.ts";
export {
  type Affine,
  type AffineLike,
  type Atom,
  add,
  affine,
  affineEquals,
  ceilDivide,
  evaluateAffine,
  type Floor,
  floorDivide,
  formatAffine,
  minus,
  remainder,
  replaceVariables,
  scale,
  type Term,
  variablesOf,
} from "./expression.ts";
export { findValueFlow } from "./flow.ts";
export { type Flow, type FlowQuestion, findFlow } from "./flow-question.ts";
export { affineHull, polyhedralHull, simpleHull } from "./hull.ts";
export { ConflictMemory, type KnownConflicts } from "./known-conflicts.ts";
export {
  checkApart,
  checkDependence,
  isLegal,
  type Legality,
  type LegalityOptions,
  type MarkKind,
  pairOf,
  type TimeMark,
  type TimeSchedule,
  type ViolationKind,
  type Witness,
} from "./legality.ts";
export { lexMax, lexMaxMap, lexMin, lexMinMap } from "./lexicographic.ts";
export {
  type AxisIndex,
  accessMap,
  domainOf,
  type NestAccess,
  type NestStatement,
  toStatement,
} from "./nest.ts";
export { domainMap, flatRangeProduct, rangeMap, unwrap, wrap } from "./nested.ts";
export { parseAffine, parseMap, parseSet } from "./notation-parse.ts";
export { formatPiece, formatSet } from "./notation-print.ts";
export { findIntegerPoint } from "./omega.ts";
export {
  alignParams,
  applyMap,
  compose,
  deltas,
  domain,
  emptyMap,
  emptySet,
  fixParams,
  identityMap,
  intersect,
  intersectDomain,
  intersectParams,
  intersectRange,
  inverse,
  pairsOf,
  paramsOf,
  projectOut,
  projectParams,
  range,
  renameTuple,
  union,
  universeMap,
  universeSet,
} from "./operations.ts";
export { type Extreme, maximum, minimum } from "./optimum.ts";
export { lexLess, orderedBefore } from "./order.ts";
export {
  type Count,
  type CountTerm,
  evaluateCount,
  formatCount,
  type Monomial,
} from "./quasi-polynomial.ts";
export { removeRedundancies } from "./redundancy.ts";
export { checkTree, type TreeLegality, type TreeQuestion } from "./tree/check.ts";
export {
  applyDirective,
  judgePlan,
  type OrderDirective,
  scheduleNest,
  startPlan,
  type TreeDirective,
  type Verdict,
} from "./tree/directive.ts";
export { printTreeDirective } from "./tree/directive-text.ts";
export {
  describeEdits,
  type Edit,
  editDirectives,
  editsOf,
  type ProposedDirective,
} from "./tree/edits.ts";
export {
  flattenTree,
  type TimePart,
  type TimePaths,
  timePaths,
  timesOf,
} from "./tree/flatten.ts";
export { generateLoops, type LoopQuestion } from "./tree/generate-loops.ts";
export {
  type Bound,
  bodiesOf,
  guardsOf,
  type LoopNode,
  printLoops,
  runLoops,
} from "./tree/loop-nest.ts";
export {
  type Nest,
  nestDependences,
  orderedStatements,
  type Plan,
} from "./tree/nest-program.ts";
export { proveBands } from "./tree/prove-bands.ts";
export {
  executeTree,
  type Instance,
  instanceKey,
  type Run,
  type RunOptions,
  runTree,
} from "./tree/run.ts";
export { splitName } from "./tree/split-directives.ts";
export {
  checkStorage,
  type Relocation,
  type StorageAnswer,
  type StorageClash,
  type StoragePlace,
} from "./tree/storage.ts";
export { relocationOf, type StorageDirective } from "./tree/storage-directives.ts";
export {
  type Change,
  type FoundEdits,
  type Judge,
  type Judgement,
  smallestChange,
  smallestEdits,
} from "./tree/suggest.ts";
export type {
  BandMember,
  BandNode,
  FilterNode,
  LoopMark,
  ScheduleTree,
  TreeMark,
} from "./tree/tree.ts";
export { parseTree } from "./tree/tree-parse.ts";
export { printTree } from "./tree/tree-text.ts";
export type {
  Division,
  IntegerMap,
  IntegerSet,
  NestedPair,
  Piece,
  Point,
  PointPair,
  SetOrMap,
  Tuple,
} from "./types.ts";
export { formatWitness } from "./witness.ts";
export { type Answer, defaultWork, type Truth, type UnknownReason } from "./work.ts";
