/**
 * Libraries of matrix products behind the Session interface, as Debian packages carry them: OpenBLAS, BLIS and
 * oneDNN, called through koffi. Each is given both matrices as rows in every call and packs what it wants then:
 * a call has no place for what was packed before. Results go where they are wanted, as those of all sessions.
 */
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { float32Tensor, type Runtime, type Session, takeFloat32 } from "./session.ts";

type Koffi = typeof import("koffi").default;
type Library = ReturnType<Koffi["load"]>;

/** y = x·w for x of m by k, w of k by n. */
type Multiply = (
  shape: readonly [m: number, n: number, k: number],
  x: Float32Array,
  w: Float32Array,
  y: Float32Array,
) => void;

interface GemmLibrary {
  readonly name: string;
  /** Debian's package, and the library's file as the loader finds it. */
  readonly debian: string;
  readonly file: string;
  bind(library: Library, koffi: Koffi, threads: number): Multiply;
  version(library: Library, koffi: Koffi): string;
}

const rowMajor = 101;
const noTranspose = 111;
const cblas =
  "void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc)";

function cblasMultiply(library: Library): Multiply {
  const sgemm = library.func(cblas);
  return ([m, n, k], x, w, y) => {
    sgemm(rowMajor, noTranspose, noTranspose, m, n, k, 1, x, k, w, n, 0, y, n);
  };
}

const libraries: readonly GemmLibrary[] = [
  {
    name: "OpenBLAS",
    debian: "libopenblas0-pthread",
    file: "libopenblas.so.0",
    bind(library, _, threads) {
      library.func("void openblas_set_num_threads(int n)")(threads);
      return cblasMultiply(library);
    },
    version: (library) => String(library.func("const char *openblas_get_config(void)")()),
  },
  {
    name: "BLIS",
    debian: "libblis4-pthread",
    file: "libblis.so.4",
    bind(library, _, threads) {
      library.func("void bli_thread_set_num_threads(int64_t n)")(threads);
      return cblasMultiply(library);
    },
    version: (library) => String(library.func("const char *bli_info_get_version_str(void)")()),
  },
  {
    name: "oneDNN",
    debian: "libdnnl2",
    file: "libdnnl.so.2",
    bind(library, koffi, threads) {
      // Debian's is built with OpenMP, whose threads are the process's.
      koffi.load("libgomp.so.1").func("void omp_set_num_threads(int n)")(threads);
      const sgemm = library.func(
        "int dnnl_sgemm(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc)",
      );
      const plain = "N".charCodeAt(0);
      return ([m, n, k], x, w, y) => {
        const status = sgemm(plain, plain, m, n, k, 1, x, k, w, n, 0, y, n) as number;
        if (status !== 0) throw new Error(`dnnl_sgemm returns ${status} for ${m}x${n}x${k}`);
      };
    },
    version(library, koffi) {
      const parts = koffi.struct({ major: "int", minor: "int", patch: "int" });
      const at = library.func("dnnl_version", koffi.pointer(parts), [])() as unknown;
      const { major, minor, patch } = koffi.decode(at, parts) as Record<string, number>;
      return `${major}.${minor}.${patch}`;
    },
  },
];

/** Installs Debian's packages when asked; those that are not there are left out of the suite by name. */
export function prepareGemmLibraries(install: boolean): undefined {
  const missing = libraries.filter(({ file }) => tryLoad(file) === undefined);
  if (!install || missing.length === 0) return;
  spawnSync("apt-get", ["update"], { stdio: "ignore" });
  const packages = missing.map((l) => l.debian);
  const args = ["install", "-y", "--no-install-recommends", ...packages];
  spawnSync("apt-get", args, { stdio: "ignore" });
}

/** A runtime that has no model, only the constant operand of its product. */
export interface GemmRuntime extends Pick<Runtime, "name" | "version"> {
  openProduct(shape: readonly [m: number, n: number, k: number], w: Float32Array): Session;
}

/** The libraries that are here, and the names of those that are not. */
export function gemmRuntimes(threads: number): {
  readonly runtimes: readonly GemmRuntime[];
  readonly missing: readonly string[];
} {
  const runtimes: GemmRuntime[] = [];
  const missing: string[] = [];
  for (const { name, file, bind, version } of libraries) {
    const library = tryLoad(file);
    if (library === undefined) {
      missing.push(name);
      continue;
    }
    const multiply = bind(library, koffi(), threads);
    runtimes.push({
      name,
      version: version(library, koffi()),
      openProduct: (shape, w) => session(multiply, shape, w),
    });
  }
  return { runtimes, missing };
}

function session(multiply: Multiply, shape: Parameters<Multiply>[0], w: Float32Array): Session {
  const [m, n] = shape;
  return {
    inputs: [],
    outputs: [],
    run: async (feeds, into) => {
      const y = into ? takeFloat32(into, "y").data : new Float32Array(m * n);
      multiply(shape, takeFloat32(feeds, "x").data, w, y);
      return { y: float32Tensor([m, n], y) };
    },
    release: async () => {},
  };
}

let loaded: Koffi | undefined;

function koffi(): Koffi {
  loaded ??= createRequire(import.meta.url)("koffi") as Koffi;
  return loaded;
}

function tryLoad(file: string): Library | undefined {
  try {
    return koffi().load(file);
  } catch {
    // koffi is not there, or the loader finds no such library: the suite says which.
    return undefined;
  }
}
