// Begins the console.

import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "../api/client.ts";
import { router } from "./router.tsx";
import { showScheme } from "./scheme.ts";
import "./tokens.css";
import "./styles.css";

// After an update of the gateway this page's parts have other names: load the new page, once.
const RELOADED = "mooring.reloaded";
addEventListener("vite:preloadError", (event) => {
  if (sessionStorage.getItem(RELOADED) !== null) return;
  sessionStorage.setItem(RELOADED, "1");
  event.preventDefault();
  location.reload();
});

showScheme();
const root = document.getElementById("root");
if (root === null) throw new Error("the page has no #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
