/**
 * The example page in a real Chromium: a click on its button, and the text that it then shows compared
 * with what a person reads in the picture. Trial n takes picture n. Target `isolated` serves the page so
 * that it may share memory and expects threads; `plain` does not and expects one.
 */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { exitCodes, Refusal } from "../../bench/refusal.ts";
import { pages } from "../../demo/images/pages.ts";
import { errorShare } from "../../demo/ocr/edit-distance.ts";
import { buildSite, siteFolder } from "../../examples/browser/build.ts";
import { type Site, serve } from "../../examples/browser/serve.ts";
import { type Campaign, type Finding, passed } from "../campaign.ts";

/** Where Chromium is under Debian and Fedora, and where CHROMIUM says. */
const places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const mostMs = 180_000;

export const browser: Campaign = {
  name: "browser",
  summary: "the example page in Chromium: a click, and the text compared",
  targets: ["isolated", "plain"],
  defaultCount: pages.length,
  open: async (target) => {
    const executablePath = [process.env.CHROMIUM ?? "", ...places].find((p) => existsSync(p));
    if (executablePath === undefined) {
      const help = "install it (Debian: apt-get install chromium) or set CHROMIUM to its path";
      throw new Refusal(`Chromium is not here: ${help}`, exitCodes.environment);
    }
    await buildSite();
    const isolated = target === "isolated";
    return async (seed) => {
      const site = await serve(siteFolder, { isolated, port: 0 });
      // Without a sandbox of its own: in containers the kernel grants none, and the page is ours.
      const engine = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
      try {
        return await readPicture(engine, site, { isolated, seed });
      } finally {
        await engine.close();
        site.close();
      }
    };
  },
};

async function readPicture(
  engine: Browser,
  site: Site,
  { isolated, seed }: { readonly isolated: boolean; readonly seed: number },
): Promise<Finding> {
  const { file, lines, errorShare: allowed } = pages[seed % pages.length]!;
  const page = await engine.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  await page.goto(site.url);
  await page.getByLabel("A picture").selectOption(file);
  await page.getByRole("button", { name: "Read the text" }).click();
  await page.locator("#read:not([data-done=no])[data-done]").waitFor({ timeout: mostMs });
  const status = (await page.locator("#status").textContent()) ?? "";
  const text = (await page.locator("#result").textContent()) ?? "";
  const threads = Number(await page.locator("#result").getAttribute("data-threads"));
  if (faults.length > 0) return failed(`${file}: ${faults.join("; ")}`);
  const share = errorShare(text.split("\n"), lines);
  if (share > allowed) return failed(`${file}: ${(100 * share).toFixed(1)} % misread; ${status}`);
  if (isolated !== threads > 1) return failed(`${file}: ${threads} threads`);
  return passed;
}

function failed(reason: string): Finding {
  return { kind: "failed", reason };
}
